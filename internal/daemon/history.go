package daemon

import (
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// by is the store for the changes of one author.
func (d *Daemon) by(a audit.Author) store.Editor { return d.store.By(store.Author(a)) }

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// passphrase is the daemon's question for one, put to the person at its
// terminal; nil when it has none: a service gets its passphrase from systemd.
func (a *app) passphrase() func(context.Context, daemon.Passphrase) ([]byte, error) {
	if !a.interactive() {
		return nil
	}
	return func(ctx context.Context, q daemon.Passphrase) ([]byte, error) {
		person := &asker{app: a, pinentry: findPinentry(a.env, a.goos)}
		for {
			text := "The key of the credentials is in an encrypted file."
			if q.New {
				text = fmt.Sprintf("The key of the credentials will be kept in an encrypted file. Choose a passphrase of at least %d characters for it. Without the passphrase the credentials are lost.", q.Least)
			}
			if q.Problem != "" {
				text = sentence(q.Problem) + "\n" + text
			}
			first, err := person.value(ctx, text, "Passphrase")
			if errors.Is(err, errDeclined) {
				err = errors.New("none was entered")
			}
			if err != nil || !q.New {
				return first, err
			}
			again, err := person.value(ctx, "The same passphrase again, against slips.", "Passphrase")
			same := bytes.Equal(first, again)
			clear(again)
			if err == nil && same {
				return first, nil
			}
			clear(first)
			if errors.Is(err, errDeclined) {
				err = errors.New("it was entered only once")
			}
			if err != nil {
				return nil, err
			}
			q.Problem = "the two passphrases were not the same"
		}
	}
}

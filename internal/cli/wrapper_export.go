package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

type exportOptions struct {
	app  *app
	ids  []string
	dir  string
	json bool
}

func (a *app) wrapperExportCommand() *cobra.Command {
	o := &exportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "export [ID...]",
		Short: "Print wrappers, or write them to a folder, one file each",
		Long: `Prints the documents of the named wrappers, or of all, one after another and
indented; with --json as one array. With --dir it writes each to ID.json in that
folder, and touches only files whose content changes, so a folder under version
control shows what really changed. A wrapper holds no credential.`,
		Example: "  hbrestd wrapper export --dir wrappers\n  hbrestd wrapper export orders.list > orders.list.json",
		Args:    takes(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(-1),
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "write to this `folder`, which is made when it is not there")
	_ = cmd.MarkFlagDirname("dir") // fails only for a flag that is not there
	addJSON(cmd, &o.json)
	return cmd
}

// An exported is a wrapper's id and document.
type exported struct {
	id  string
	doc json.RawMessage
}

func (o *exportOptions) run(ctx context.Context) error {
	if o.dir != "" && o.json {
		return usage("--dir and --json do not go together: the files are always the same")
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	list, damaged, err := o.collect(ctx, d)
	if err != nil {
		return err
	}
	switch {
	case o.dir != "":
		err = o.write(list)
	case o.json:
		docs := make([]json.RawMessage, 0, len(list))
		for _, e := range list {
			docs = append(docs, e.doc)
		}
		err = o.app.printJSON(docs)
	default:
		var b strings.Builder
		for _, e := range list {
			b.WriteString(pretty(e.doc))
		}
		err = o.app.print(b.String())
	}
	if err == nil && damaged > 0 {
		return fmt.Errorf("%s not exported, because the stored record is damaged", plural(damaged, "wrapper was", "wrappers were"))
	}
	return err
}

// collect gets the named documents, or all; damaged ones are counted only when
// all were wanted.
func (o *exportOptions) collect(ctx context.Context, d control.Backend) (list []exported, damaged int, err error) {
	ids := o.ids
	if len(ids) > 0 {
		if ids, err = existing(ctx, d, ids); err != nil {
			return nil, 0, err
		}
	} else {
		m, err := d.Manifest(ctx, 0)
		if err != nil {
			return nil, 0, err
		}
		for _, w := range m.Wrappers {
			if w.Damaged != "" {
				damaged++
				o.app.warn("%s is damaged: %s", w.ID, w.Damaged)
				continue
			}
			ids = append(ids, w.ID)
		}
	}
	for _, id := range ids {
		doc, err := d.Wrapper(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, exported{id, doc})
	}
	return list, damaged, nil
}

func (o *exportOptions) write(list []exported) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	written := 0
	for _, e := range list {
		changed, err := writeFile(filepath.Join(o.dir, fileName(e.id)), []byte(pretty(e.doc)))
		if err != nil {
			return err
		}
		if changed {
			written++
		}
	}
	return o.app.print(fmt.Sprintf("%s, %d written, %d unchanged\n", plural(len(list), "wrapper", "wrappers"), written, len(list)-written))
}

// fileName is the file of a wrapper. Ids are safe file names but for the few
// that are devices on Windows, whatever ending they have.
func fileName(id string) string {
	stem, _, _ := strings.Cut(strings.ToUpper(id), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return "_" + id + ".json"
	}
	if len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '0' && stem[3] <= '9' {
		return "_" + id + ".json"
	}
	return id + ".json"
}

// writeFile replaces a file whole when its content differs.
func writeFile(path string, data []byte) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	dir, name := filepath.Split(path)
	temporary := filepath.Join(dir, fmt.Sprintf(".%s.%d.tmp", name, os.Getpid()))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666) // the umask decides, as for any file of the user
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // it may not be there
		return false, fmt.Errorf("writing %s: %w", path, err)
	}
	return true, nil
}

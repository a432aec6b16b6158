package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

var command = regexp.MustCompile("`(hbrestd(?: [a-z][a-z-]*)+)")

// A text that names a command which does not exist sends its reader nowhere.
func TestEveryNamedCommandExists(t *testing.T) {
	named := map[string]string{} // command -> where
	for _, e := range fault.Catalogue() {
		for _, m := range command.FindAllStringSubmatch(e.Hint, -1) {
			named[m[1]] = "hint of " + string(e.Code)
		}
	}
	fset := token.NewFileSet()
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				named[m[1]] = p
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(named) < 2 {
		t.Fatalf("only %d commands are named anywhere: %v", len(named), named)
	}
	root := newWorld(t, nil).app(nil, nil).root()
	for text, where := range named {
		// Words after a command are its arguments: `hbrestd config set NAME`.
		cmd, rest, err := root.Find(strings.Fields(text)[1:])
		if err != nil || len(rest) > 0 && !acts(cmd) {
			t.Errorf("%s names `%s`, and there is no such command", where, text)
			continue
		}
		var out, errOut bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		noEnv := func(string) (string, bool) { return "", false }
		if code := Main(args, noEnv, strings.NewReader(""), &out, &errOut); code != 0 || !strings.Contains(out.String(), cmd.CommandPath()) {
			t.Errorf("%s names `%s`, whose help exits with %d: %s", where, text, code, errOut.String())
		}
	}
}

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

// The packages that fail for want of a credential ask for a person in words that
// [personHint] knows, or in hints of the catalogue; a person is not asked to ask one.
func TestHintsThatAskForAPerson(t *testing.T) {
	others := map[string]bool{ // of a state, not of what to do
		"it was changed since a person saved it": true,
	}
	found := 0
	for _, dir := range []string{"secrets", "oauth", "executor", "outbound"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil || !strings.Contains(text, "person") || others[text] {
					return true
				}
				found++
				for _, code := range fault.Codes() {
					if e, _ := fault.Lookup(code); e.Hint == text {
						return true // TestPersonHints has it
					}
				}
				if said := personHint(fault.New("SECRET_LOCKED", "m").With(fault.Hint("%s", text))); strings.Contains(said, "person") {
					t.Errorf("%s: %q stays %q", file, text, said)
				}
				return true
			})
		}
	}
	if found < 10 {
		t.Errorf("only %d hints were found", found)
	}
}

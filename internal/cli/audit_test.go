package cli

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

var someRows = []api.AuditRow{
	{Seq: 9, Time: "2026-11-30T08:00:00.123Z", Kind: "run", Call: "c1", Wrapper: "orders.list", Method: "GET", Host: "api.example.com", Status: 200, Bytes: 512, DurationMs: 42},
	{Seq: 11, Time: "2026-11-30T08:00:01.000Z", Kind: "run", Wrapper: "orders.create", Method: "POST", Host: "api.example.com", Error: "UPSTREAM_TIMEOUT", Outcome: "unknown"},
	{Seq: 12, Time: "2026-11-30T08:00:02.000Z", Kind: "change", Wrapper: "orders.create", Author: "agent", Action: "wrapper created"},
}

const (
	row9  = "9\t2026-11-30T08:00:00.123Z\trun\torders.list\tGET\tapi.example.com\t200\t512\t42\t\n"
	row11 = "11\t2026-11-30T08:00:01.000Z\trun\torders.create\tPOST\tapi.example.com\t\t0\t0\tUPSTREAM_TIMEOUT unknown outcome\n"
	row12 = "12\t2026-11-30T08:00:02.000Z\tchange\torders.create\t\t\t\t\t\twrapper created by agent\n"
)

func TestAudit(t *testing.T) {
	limits := []int{}
	f := &fake{audit: func(limit int) (*api.AuditPage, error) {
		limits = append(limits, limit)
		if limit == 3 {
			return &api.AuditPage{}, nil
		}
		return &api.AuditPage{Rows: someRows, Next: 12}, nil
	}}
	w := newWorld(t, f)
	check(t, "for a program", w.hb("audit"), said{0, row9 + row11 + row12, ""})
	w.width = 200
	check(t, "on a terminal", w.hb("audit", "-n", "1000"), said{0, "" +
		"SEQ  TIME                      KIND    WRAPPER        METHOD  HOST             STATUS  BYTES  MS  RESULT\n" +
		"9    2026-11-30T08:00:00.123Z  run     orders.list    GET     api.example.com  200     512    42  -\n" +
		"11   2026-11-30T08:00:01.000Z  run     orders.create  POST    api.example.com  -       0      0   UPSTREAM_TIMEOUT unknown outcome\n" +
		"12   2026-11-30T08:00:02.000Z  change  orders.create  -       -                -       -      -   wrapper created by agent\n", ""})
	w.width = 0
	check(t, "empty", w.hb("audit", "-n", "3"), said{0, "", "hbrestd: the audit trail is empty\n"})
	check(t, "empty, JSON", w.hb("audit", "-n", "3", "--json"), said{0, "{\n  \"rows\": [],\n  \"next\": 0\n}\n", ""})
	hint := "hbrestd: hint: `hbrestd audit --help` shows how it is used.\n"
	check(t, "0 rows", w.hb("audit", "-n", "0"), said{2, "", "hbrestd: error: --rows is 0, not a whole number from 1 to 1000\n" + hint})
	check(t, "1001 rows", w.hb("audit", "-n", "1001"), said{2, "", "hbrestd: error: --rows is 1001, not a whole number from 1 to 1000\n" + hint})
	if !cmp.Equal(limits, []int{20, 1000, 3, 3}) {
		t.Errorf("limits %v", limits)
	}
}

// A follower asks from where it is, and ends with the interruption, or with
// the daemon.
func TestAuditFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var asked []uint64
	f := &fake{
		audit: func(int) (*api.AuditPage, error) { return &api.AuditPage{Rows: someRows[:1], Next: 9}, nil },
		follow: func(ctx context.Context, after uint64) (*api.AuditPage, error) {
			asked = append(asked, after)
			switch after {
			case 9:
				return &api.AuditPage{Rows: someRows[1:2], Next: 11}, nil
			case 11:
				return &api.AuditPage{Rows: someRows[2:], Next: 12}, nil
			}
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	w := newWorld(t, f)
	w.ctx = ctx
	check(t, "followed", w.hb("audit", "-f"), said{0, row9 + row11 + row12, ""})
	if !cmp.Equal(asked, []uint64{9, 11, 12}) {
		t.Errorf("asked from %v", asked)
	}

	f.follow = func(context.Context, uint64) (*api.AuditPage, error) {
		return nil, fault.New("SHUTTING_DOWN", "hbrestd is stopping")
	}
	w.ctx = context.Background()
	check(t, "the daemon stops", w.hb("audit", "-f", "--json"), said{3, `{"seq":9,"time":"2026-11-30T08:00:00.123Z","kind":"run","call":"c1","wrapper":"orders.list","method":"GET","host":"api.example.com","status":200,"bytes":512,"durationMs":42}
`, `{
  "ok": false,
  "code": "SHUTTING_DOWN",
  "status": null,
  "field": null,
  "retryable": true,
  "hint": "Start it again with ` + "`hbrestd service start` or `hbrestd run`" + `, then repeat the call.",
  "message": "hbrestd is stopping",
  "details": []
}
`})
	w.width = 200
	check(t, "columns stay in their places", w.hb("audit", "-f"), said{
		3, "" +
			"SEQ     TIME                      KIND    WRAPPER               METHOD  HOST                      STATUS  BYTES    MS      RESULT\n" +
			"9       2026-11-30T08:00:00.123Z  run     orders.list           GET     api.example.com           200     512      42      -\n",
		"hbrestd: error: hbrestd is stopping\nhbrestd: hint: Start it again with `hbrestd service start` or `hbrestd run`, then repeat the call.\n",
	})
}

func TestAuditVerify(t *testing.T) {
	f := &fake{report: control.AuditReport{OK: true, Rows: 4, First: 9, Head: "12:ab12", HeadSeen: true}}
	w := newWorld(t, f)
	check(t, "verifies", w.hb("audit", "verify", "--head", " 9:cd34\n"), said{0, "the audit trail verifies: 4 rows from 9 on, head 12:ab12; the noted head is in it\n", ""})
	f.report.HeadSeen = false
	check(t, "without a head", w.hb("audit", "verify"), said{0, "the audit trail verifies: 4 rows from 9 on, head 12:ab12\n", ""})
	f.report = control.AuditReport{OK: true}
	check(t, "empty", w.hb("audit", "verify"), said{0, "the audit trail is empty\n", ""})
	f.report = control.AuditReport{Rows: 4, First: 9, Head: "12:ab12", BadSeq: 10, Problem: "row 10 does not follow from row 9"}
	check(t, "does not", w.hb("audit", "verify"), said{1, "the audit trail does NOT verify at row 10: row 10 does not follow from row 9\n", ""})
	check(t, "does not, JSON", w.hb("audit", "verify", "--json"), said{1, `{
  "ok": false,
  "rows": 4,
  "first": 9,
  "head": "12:ab12",
  "badSeq": 10,
  "problem": "row 10 does not follow from row 9"
}
`, ""})
	check(t, "head", w.hb("audit", "head"), said{0, "12:ab12\n", ""})
	check(t, "head, JSON", w.hb("audit", "head", "--json"), said{0, "{\n  \"seq\": 12,\n  \"hash\": \"ab12\",\n  \"head\": \"12:ab12\"\n}\n", ""})
	if diff := cmp.Diff([]string{`verify {"head":"9:cd34"}`, `verify {}`, `verify {}`, `verify {}`, `verify {}`}, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

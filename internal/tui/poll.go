package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// retryAfter is how long the panel waits before it looks for a daemon that
	// did not answer.
	retryAfter = 2 * time.Second
	// pollPause is the least time between two questions for news, should the
	// daemon answer at once that there is none.
	pollPause = 500 * time.Millisecond
	// auditRows is how many rows the panel keeps.
	auditRows = 500
)

// news makes a call that waits for news, again and again: f returns what to
// apply and the call after it.
func (m *model) news(wait time.Duration, f func(ctx context.Context) (then, error), again func(m *model) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		if wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-m.ctx.Done():
				return nil
			case <-t.C:
			}
		}
		next, err := f(m.ctx)
		if m.ctx.Err() != nil {
			return nil
		}
		return then(func(m *model) tea.Cmd {
			if err != nil {
				m.lost(err)
				return again(m)
			}
			return tea.Batch(m.back(), next(m))
		})
	}
}

// lost notes that the daemon does not answer.
func (m *model) lost(err error) {
	if !errors.Is(err, context.Canceled) {
		m.away = err
	}
}

// back notes that the daemon answers, and reads again what has no news of its
// own.
func (m *model) back() tea.Cmd {
	if m.away == nil {
		return nil
	}
	m.away = nil
	m.good("the daemon answers again")
	return tea.Batch(m.loadPolicies(), m.credentials.load(m))
}

// pause is how long to wait after an answer that came at once and said nothing.
func pause(changed bool) time.Duration {
	if changed {
		return 0
	}
	return pollPause
}

func (m *model) watchWrappers(after uint64) tea.Cmd { return m.pollWrappers(after, 0) }

func (m *model) pollWrappers(after uint64, wait time.Duration) tea.Cmd {
	return m.news(wait, func(ctx context.Context) (then, error) {
		l, err := m.o.Backend.Manifest(ctx, after)
		if err != nil {
			return nil, err
		}
		return func(m *model) tea.Cmd {
			m.wrappers.set(m, l)
			return m.pollWrappers(l.Revision, pause(l.Revision != after))
		}, nil
	}, func(m *model) tea.Cmd { return m.pollWrappers(0, retryAfter) })
}

func (m *model) watchApprovals(after uint64) tea.Cmd { return m.pollApprovals(after, 0) }

func (m *model) pollApprovals(after uint64, wait time.Duration) tea.Cmd {
	return m.news(wait, func(ctx context.Context) (then, error) {
		l, err := m.o.Backend.Approvals(ctx, after)
		if err != nil {
			return nil, err
		}
		return func(m *model) tea.Cmd {
			return tea.Batch(m.approvals.set(m, l), m.pollApprovals(l.Revision, pause(l.Revision != after)))
		}, nil
	}, func(m *model) tea.Cmd { return m.pollApprovals(0, retryAfter) })
}

func (m *model) startAudit() tea.Cmd { return m.readAudit(0) }

func (m *model) readAudit(wait time.Duration) tea.Cmd {
	return m.news(wait, func(ctx context.Context) (then, error) {
		p, err := m.o.Backend.Audit(ctx, auditRows)
		if err != nil {
			return nil, err
		}
		return func(m *model) tea.Cmd {
			m.audit.set(m, p.Rows)
			return m.followAudit(p.Next, 0)
		}, nil
	}, func(m *model) tea.Cmd { return m.readAudit(retryAfter) })
}

func (m *model) followAudit(after uint64, wait time.Duration) tea.Cmd {
	return m.news(wait, func(ctx context.Context) (then, error) {
		p, err := m.o.Backend.AuditFollow(ctx, after, auditRows)
		if err != nil {
			return nil, err
		}
		return func(m *model) tea.Cmd {
			cmd := m.audit.add(m, p.Rows)
			return tea.Batch(cmd, m.followAudit(p.Next, pause(len(p.Rows) > 0)))
		}, nil
	}, func(m *model) tea.Cmd { return m.readAudit(retryAfter) })
}

// Package tui is the settings panel of hbrestd: a person's screens for
// wrappers, credentials, approvals and the audit trail.
//
// It reaches the daemon through the control socket alone, runs no program
// itself (the editor and the question for a value come from its caller), and
// never shows or keeps the value of a credential. Everything that came from
// outside loses what would steer the terminal before it is drawn. Start with
// [Run]; the model is in model.go, each tab in a file of its own, and
// docs/settings.md names the command behind every action.
package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The smallest terminal that the panel draws in.
const (
	leastWidth  = 60
	leastHeight = 15
)

// A Backend is what the panel needs of the daemon: a part of control.Backend.
type Backend interface {
	Manifest(ctx context.Context, after uint64) (*api.Manifest, error)
	Wrapper(ctx context.Context, id string) (json.RawMessage, error)
	Secrets(context.Context) (*api.SecretList, error)
	Test(context.Context, *api.TestRequest) (*api.TestResult, error)
	Change(context.Context, *api.ChangeRequest) (*api.ChangeResult, error)
	Expose(context.Context, *control.ExposeRequest) (*control.ExposeResult, error)
	SecretState(context.Context) (*control.SecretState, error)
	CheckSecret(context.Context, *control.SecretPut) (*control.SecretResult, error)
	PutSecret(context.Context, *control.SecretPut) (*control.SecretResult, error)
	DeleteSecret(context.Context, *control.SecretName) (*control.SecretResult, error)
	TestSecret(context.Context, *control.SecretTest) (*api.RunResult, error)
	Approvals(ctx context.Context, after uint64) (*control.ApprovalList, error)
	Approval(ctx context.Context, id string) (*control.Approval, error)
	Answer(context.Context, *control.ApprovalAnswer) (*control.Approval, error)
	ApprovalPolicies(context.Context) (*control.ApprovalPolicies, error)
	SetApprovalPolicy(context.Context, *control.ApprovalPolicyChange) (*control.ApprovalPolicies, error)
	Audit(ctx context.Context, limit int) (*api.AuditPage, error)
	AuditFollow(ctx context.Context, after uint64, limit int) (*api.AuditPage, error)
	AuditVerify(context.Context, *control.AuditVerifyRequest) (*control.AuditReport, error)
}

// A Command is a program that takes the terminal over until it ends.
type Command = tea.ExecCommand

// Options are what a panel works with. Backend, Edit, Ask and Header are
// required.
type Options struct {
	Backend Backend
	// Edit is the person's editor on one file.
	Edit func(path string) Command
	// Ask asks for a text that must not be shown, past the panel: in a window of
	// its own or on the terminal, which is free while it runs. prompt may have
	// several lines, the last one names the text. The panel wipes what it gets,
	// and shows the text of an error.
	Ask func(prompt string) ([]byte, error)
	// Header reads NAME[:PREFIX] as a person writes it, and refuses what looks
	// like a value.
	Header func(text string) (control.SecretHeader, error)
	// MaxTools is how many tools clients show; 0: 40.
	MaxTools int

	Input   io.Reader // the terminal
	Output  io.Writer // the terminal
	Environ []string  // for TERM and NO_COLOR; nil: none
	// Now is the clock, whose location is that of the times shown; nil:
	// time.Now.
	Now func() time.Time
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.MaxTools = cmp.Or(o.MaxTools, 40)
	if o.Environ == nil {
		o.Environ = []string{}
	}
	return o
}

// noColor reports whether NO_COLOR asks for no colours, whatever else asks for
// them.
func (o Options) noColor() bool {
	value := ""
	for _, pair := range o.Environ {
		if v, ok := strings.CutPrefix(pair, "NO_COLOR="); ok {
			value = v
		}
	}
	return value != ""
}

// Run shows the panel until the person leaves it or ctx ends, and leaves the
// terminal as it was. The error is the context's, or that of a terminal which
// cannot be used.
func Run(ctx context.Context, o Options) error {
	o = o.filled()
	inner, cancel := context.WithCancel(ctx)
	defer cancel() // ends the calls that wait for news
	opts := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithEnvironment(o.Environ), tea.WithoutSignalHandler(),
	}
	if o.noColor() {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	_, err := tea.NewProgram(newModel(inner, o), opts...).Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return nil
	case err != nil:
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

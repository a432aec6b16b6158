package client

import "time"

// SetPatience shortens the wait for a proof, so that a test of a silent
// stranger need not last as long as a real one.
func (c *Client) SetPatience(d time.Duration) { c.patience = d }

// MaxAnswer is the limit of an answer.
const MaxAnswer = maxAnswer

// CanPeek says whether this system knows that a connection is gone.
const CanPeek = canPeek

// DoNotPeek makes the client behave as on a system where it cannot know whether
// a kept connection is gone.
func (c *Client) DoNotPeek() { c.peek = false }

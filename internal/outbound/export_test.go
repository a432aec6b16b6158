package outbound

// Waiting is how many requests wait for an origin.
func (c *Client) Waiting(origin string) int {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if l := c.queue.lanes[origin]; l != nil {
		return len(l.waiting)
	}
	return 0
}

// Lanes is how many origins the queue remembers.
func (c *Client) Lanes() int {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return len(c.queue.lanes)
}

// Paces is how many rates are remembered.
func (c *Client) Paces() int {
	c.pacing.mu.Lock()
	defer c.pacing.mu.Unlock()
	return len(c.pacing.paces)
}

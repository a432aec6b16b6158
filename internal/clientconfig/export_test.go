package clientconfig

// PlanText is Plan on a text instead of a file; it returns the new text.
func PlanText(c Client, text []byte, r Request) ([]byte, error) {
	f := file{path: "settings", target: "settings", exists: true, raw: text}
	if err := f.split(); err != nil {
		return nil, err
	}
	ch, err := c.plan(f, r)
	return ch.After, err
}

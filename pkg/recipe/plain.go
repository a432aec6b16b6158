package recipe

// Plain is the recipe of a call that names none: the whole body is what there
// is to show, as compact JSON in a fenced block, and its items are the
// records.
func Plain() *Recipe {
	r := &Recipe{
		SchemaVersion: 1,
		Select:        Path{text: "$", root: true},
		Shape:         List,
		Mode:          Document,
		Limits:        Limits{MaxItems: defaultMaxItems, MaxChars: defaultMaxChars},
		plain:         true,
	}
	r.plan = r.prepare()
	return r
}

package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
)

// Records keeps sealed bytes under names. The vault never hands it anything
// else, and takes what it returns for possibly damaged or forged.
type Records interface {
	GetSealed(name string) ([]byte, error) // nil, nil when there is none
	PutSealed(name string, sealed []byte) error
	DeleteSealed(name string) error // nil when there is none
	ListSealed() ([]string, error)  // in any order
}

// Options are what a vault needs. Records and Key are required.
type Options struct {
	Records Records
	Key     KeySource
	Mint    Minter           // nil: OAuth2 credentials cannot be used
	Now     func() time.Time // default time.Now
}

// A Vault keeps credentials. Its methods may be called by several goroutines.
type Vault struct {
	records Records
	source  KeySource
	mint    Minter
	now     func() time.Time
	life    context.Context // ends with Close
	end     context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex // guards reading a record and writing it back, and what follows; taken before keyMu
	flights  map[string]*mintFlight
	unsaved  map[string][]byte   // sealed tokens that could not be stored
	refusals map[string]*refusal // of token endpoints, by the credential's name

	keyMu     sync.Mutex // guards what follows
	box       *box
	keyErr    error
	keyErrAt  time.Time
	keyErrFor time.Duration
	keyFlight *keyFlight
	closed    bool
}

// Open makes a vault. It does not ask the keyring: the first use of a credential
// does. The vault's background work ends with ctx or Close.
func Open(ctx context.Context, o Options) (*Vault, error) {
	if o.Records == nil || o.Key == nil {
		return nil, errors.New("secrets: Records and Key are required")
	}
	v := &Vault{records: o.Records, source: o.Key, mint: o.Mint, now: o.Now, flights: map[string]*mintFlight{}, unsaved: map[string][]byte{}, refusals: map[string]*refusal{}}
	if v.now == nil {
		v.now = time.Now
	}
	v.life, v.end = context.WithCancel(ctx)
	return v, nil
}

// Format writes "vault" for every verb: fmt would walk through what it holds.
func (v *Vault) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "vault") }

// Close ends running mints and key requests, waits for them and wipes the master
// key. Later calls fail with SHUTTING_DOWN.
func (v *Vault) Close() {
	v.mu.Lock() // whoever starts work looks at closed under one of the two
	v.keyMu.Lock()
	v.closed = true
	v.keyMu.Unlock()
	v.mu.Unlock()
	v.end()
	v.work.Wait()
	v.mu.Lock() // nobody is sealing or opening
	defer v.mu.Unlock()
	v.keyMu.Lock()
	defer v.keyMu.Unlock()
	if v.box != nil {
		v.box.close()
		v.box = nil
	}
}

// List returns what anybody may know of the credentials, by name. One that
// cannot be read is there with its Problem. The values are not opened.
func (v *Vault) List() ([]Meta, error) {
	names, err := v.records.ListSealed()
	if err != nil {
		return nil, storeFailed(err)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmpOr(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	out := make([]Meta, 0, len(names))
	for _, n := range names {
		r, err := v.load(n)
		if err == nil && r != nil {
			err = v.genuine(r)
		}
		switch {
		case err != nil:
			out = append(out, Meta{Name: n, Problem: fault.From(err).Message})
		case r != nil: // nil: deleted since
			out = append(out, *r.meta())
		}
	}
	return out, nil
}

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// Find returns what anybody may know of one credential, or SECRET_NOT_FOUND.
func (v *Vault) Find(name string) (Meta, error) {
	r, err := v.load(name)
	if err == nil && r != nil {
		err = v.genuine(r)
	}
	if err != nil {
		return Meta{Name: name, Problem: fault.From(err).Message}, nil
	}
	if r == nil {
		return Meta{}, notFound(name)
	}
	return *r.meta(), nil
}

// Put saves a credential, a new one or another state of an old one, and drops
// its cached token. values are one for each header in order; for Basic the user
// and the password; for OAuth2 the client secret. A nil entry, or nil for all,
// keeps the sealed value; Put copies the others, the caller wipes its own.
//
// It returns SECRET_INVALID with every problem, SECRET_LOCKED when the master key
// cannot be had, SECRET_DAMAGED when a value to keep cannot be opened, and
// STORE_FAILED. The first credential makes the master key.
func (v *Vault) Put(ctx context.Context, m Meta, values [][]byte) error {
	return v.PutIf(ctx, m, values, Condition{})
}

// Examine is PutIf without values: it says what PutIf would refuse in m whatever
// the values are, and returns m as it would be saved. It asks for no key and
// changes nothing.
func (v *Vault) Examine(m Meta, c Condition) (Meta, error) {
	var k checker
	m = k.normalise(m)
	if err := k.err(); err != nil {
		return Meta{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.nameFree(m.Name); err != nil {
		return Meta{}, err
	}
	return m, v.holds(m.Name, c)
}

// A Condition is what PutIf must find under the name. The zero Condition takes
// whatever is there.
type Condition struct {
	New  bool   // nothing
	Seal string // the state that had this Meta.Seal; "": any
}

// PutIf is Put under a condition that is looked at in the moment of saving: of
// several that create a name, or change the same state, one wins. The others get
// SECRET_INVALID when the name is taken, and SECRET_CHANGED when the credential
// is not any more what it was.
func (v *Vault) PutIf(ctx context.Context, m Meta, values [][]byte, c Condition) error {
	if err := v.prepare(ctx, &m, &values); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.held()
	if err != nil {
		return err
	}
	if err := v.holds(m.Name, c); err != nil {
		return err
	}
	return v.save(b, m, values)
}

// holds checks a condition. v.mu is held.
func (v *Vault) holds(name string, c Condition) error {
	if c == (Condition{}) {
		return nil
	}
	r, err := v.load(name)
	switch {
	case c.New && (r != nil || err != nil):
		return fail("SECRET_INVALID", "there is a credential %q already", name).
			With(fault.Field("name"), fault.Hint("Run `hbrestd secret rotate %s` for a new value, or choose another name.", name))
	case c.Seal != "" && (r == nil || r.seal() != c.Seal):
		return fail("SECRET_CHANGED", "credential %q was changed by another command meanwhile; this one has changed nothing", name).With(fault.Field("name"))
	}
	return nil
}

// prepare does what of a Put needs no lock, which takes time: m and values are
// checked, and there is a key.
func (v *Vault) prepare(ctx context.Context, meta *Meta, given *[][]byte) error {
	m, values := *meta, *given
	var c checker
	m = c.normalise(m)
	if values == nil {
		values = make([][]byte, m.places())
	}
	if len(values) != m.places() {
		c.add("value", "RANGE", "a credential of this kind and these headers has %d values, not %d", m.places(), len(values))
	}
	if len(c.details) == 0 && !slices.ContainsFunc(values, func(x []byte) bool { return x == nil }) {
		c.values(m, values) // say so before a keyring is asked; with kept values, save does
	}
	if err := c.err(); err != nil {
		return err
	}
	names, err := v.records.ListSealed()
	if err != nil {
		return storeFailed(err)
	}
	*meta, *given = m, values
	// The key is asked for outside the lock: it may take seconds.
	_, err = v.masterKey(ctx, len(names) == 0)
	return err
}

// save merges, checks, seals and stores. v.mu is held.
func (v *Vault) save(b *box, m Meta, values [][]byte) error {
	if err := v.nameFree(m.Name); err != nil {
		return err
	}
	old, oldErr := v.load(m.Name)
	var oldMeta *Meta
	var sealed []value
	if slices.ContainsFunc(values, func(x []byte) bool { return x == nil }) && (old != nil || oldErr != nil) {
		if oldErr != nil {
			return oldErr
		}
		var err error
		if sealed, err = old.values(b); err != nil {
			return err
		}
		oldMeta = old.meta()
	}
	defer wipe(sealed)
	merged, c := keepValues(&m, oldMeta, sealed, values)
	defer wipe(merged)
	if err := c.err(); err != nil {
		return err
	}
	// Kept values are checked again: another kind or prefix may not suit them.
	raw := make([][]byte, len(merged))
	for i, x := range merged {
		raw[i] = x.bytes()
	}
	c.values(m, raw)
	if err := c.err(); err != nil {
		return err
	}
	r := &record{
		Version: recordVersion, Name: m.Name, Kind: m.Kind, Headers: m.Headers, AllowedHosts: m.AllowedHosts, OAuth: m.OAuth,
		Updated: v.now().UTC().Round(0), KeyID: b.id,
	}
	plain := packValues(merged)
	defer clear(plain)
	r.Sealed = b.seal(plain, r.bound())
	delete(v.unsaved, m.Name)
	if err := v.records.PutSealed(m.Name, r.encode()); err != nil {
		return storeFailed(err)
	}
	return nil
}

// nameFree refuses a name that differs from another one in case only. v.mu is held.
func (v *Vault) nameFree(name string) error {
	names, err := v.records.ListSealed()
	if err != nil {
		return storeFailed(err)
	}
	for _, n := range names {
		if n != name && strings.EqualFold(n, name) {
			var c checker
			c.add("name", "DUPLICATE", "there is a credential %s already; names that differ in case only would be mistaken for each other", n)
			return c.err()
		}
	}
	return nil
}

// Delete removes a credential and its cached token. It needs no key. It returns
// SECRET_NOT_FOUND when there is none, and STORE_FAILED.
func (v *Vault) Delete(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	data, err := v.get(name)
	if err != nil {
		return err
	}
	if data == nil {
		return notFound(name)
	}
	delete(v.unsaved, name)
	delete(v.refusals, name)
	if err := v.records.DeleteSealed(name); err != nil {
		return storeFailed(err)
	}
	return nil
}

// Grant is the right to send one credential to one host, for one call. It checks
// the binding and opens nothing, so a dry run may ask for one: SECRET_NOT_FOUND,
// SECRET_HOST_NOT_ALLOWED, or SECRET_DAMAGED when the record cannot be read.
func (v *Vault) Grant(name, host string) (*Grant, error) {
	r, err := v.load(name)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, notFound(name)
	}
	if err := r.allows(host); err != nil {
		return nil, err
	}
	g := &Grant{vault: v, name: name, host: host, binding: r.meta().binding()}
	for _, h := range r.Headers {
		g.headers = append(g.headers, h.Name)
	}
	return g, nil
}

// allows checks the binding to hosts.
func (r *record) allows(host string) error {
	name, err := hostname.Canonical(host)
	if err != nil || !slices.Contains(r.AllowedHosts, name) {
		return fail("SECRET_HOST_NOT_ALLOWED", "credential %q is not bound to the host %q; nothing was sent", r.Name, fault.Shorten(host, 100)).
			With(fault.Field("request.auth"), fault.Cause(err))
	}
	return nil
}

// genuine says whether a record is what a person saved, so that forged hosts
// are not shown as theirs and sealed again with the next value. Without the key
// at hand nobody can tell, and it is not asked for.
func (v *Vault) genuine(r *record) error {
	v.keyMu.Lock()
	have := v.box != nil && !v.closed
	v.keyMu.Unlock()
	if !have {
		return nil
	}
	vs, err := v.unseal(r)
	wipe(vs)
	if fault.Is(err, "SHUTTING_DOWN") {
		return nil
	}
	return err
}

// held is the key when masterKey had it a moment ago. v.mu is held, so that
// Close cannot wipe it meanwhile.
func (v *Vault) held() (*box, error) {
	v.keyMu.Lock()
	defer v.keyMu.Unlock()
	if v.box == nil || v.closed {
		return nil, fault.New("SHUTTING_DOWN", "the daemon is stopping")
	}
	return v.box, nil
}

func (v *Vault) get(name string) ([]byte, error) {
	if !namePattern.MatchString(name) {
		return nil, nil
	}
	data, err := v.records.GetSealed(name)
	if err != nil {
		return nil, storeFailed(err)
	}
	return data, nil
}

// load reads a record; nil, nil: there is none.
func (v *Vault) load(name string) (*record, error) {
	data, err := v.get(name)
	if err != nil || data == nil {
		return nil, err
	}
	return decodeRecord(name, bytes.Clone(data))
}

func notFound(name string) error {
	if !namePattern.MatchString(name) { // what stands there may be a credential itself
		return fail("SECRET_NOT_FOUND", "no credential has that name").With(fault.Field("request.auth"))
	}
	return fail("SECRET_NOT_FOUND", "there is no credential %q", name).With(fault.Field("request.auth"))
}

func storeFailed(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.New("STORE_FAILED", "the stored credentials could not be read or written").With(fault.Cause(err))
}

func wipe(vs []value) {
	for _, x := range vs {
		x.wipe()
	}
}

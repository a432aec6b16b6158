package store

import (
	"log/slog"
	"time"

	"go.etcd.io/bbolt"
)

// Migrate brings a closed file up by as many formats as there are steps.
func Migrate(path string, now time.Time, steps ...func(*bbolt.Tx) error) (kept string, err error) {
	_, img, err := load(path)
	if err != nil {
		return "", err
	}
	list := make([]step, len(steps))
	for i, s := range steps {
		list[i] = s
	}
	return migrate(path, img.txid, img.format(), list, Options{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), LockTimeout: time.Second})
}

// FormatSteps is how many steps there are, FileFormat what they lead to.
func FormatSteps() int { return len(formatSteps()) }

const FileFormat = fileFormat

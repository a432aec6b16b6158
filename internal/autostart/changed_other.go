//go:build !linux

package autostart

import (
	"os"
	"time"
)

func changed(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

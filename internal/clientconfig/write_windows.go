package clientconfig

import (
	"bytes"
	"io/fs"

	"github.com/natefinch/atomic"
)

// replaceFile writes a file in one step; the folder's access list holds for it.
func replaceFile(path string, data []byte, _ fs.FileInfo, _ fs.FileMode) error {
	return atomic.WriteFile(path, bytes.NewReader(data))
}

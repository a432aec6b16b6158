package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// fallbackEditors are tried when neither VISUAL nor EDITOR names one.
func fallbackEditors(goos string) []string {
	if goos == "windows" {
		return []string{"notepad"}
	}
	return []string{"nano", "vim", "vi"}
}

// editor is the command line of the person's editor.
func (a *app) editor() ([]string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		v, _ := a.env(name)
		if strings.TrimSpace(v) == "" {
			continue
		}
		if _, err := exec.LookPath(v); err == nil { // a path with spaces
			return []string{v}, nil
		}
		words, err := splitWords(v)
		if err == nil {
			_, err = exec.LookPath(words[0])
		}
		if err != nil {
			return nil, failed(exitFailed, "Set "+name+" to the command of an editor that waits until the file is closed, such as \"code --wait\".",
				"%s is %q, which cannot be started: %v", name, v, err)
		}
		return words, nil
	}
	for _, name := range fallbackEditors(a.goos) {
		if _, err := exec.LookPath(name); err == nil {
			a.say("neither VISUAL nor EDITOR is set, using %s", name)
			return []string{name}, nil
		}
	}
	return nil, failed(exitFailed, "Set EDITOR to the command of an editor; or write the document to a file, and save it with `hbrestd wrapper apply FILE`.",
		"neither VISUAL nor EDITOR is set, and none of %s is there", strings.Join(fallbackEditors(a.goos), ", "))
}

// splitWords takes a command line apart at spaces that are not inside quotes.
// Nothing else has a meaning: no shell is involved.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program")
	}
	return words, nil
}

// open runs the editor on a file until it ends. It is not cancelled: that would
// take the text away from under the person.
func (a *app) open(editor []string, path string) error {
	cmd := exec.Command(editor[0], append(editor[1:len(editor):len(editor)], path)...)
	if f, ok := a.stdin.(*os.File); ok { // another reader would have to be copied, and be waited for
		cmd.Stdin = f
	}
	cmd.Stdout, cmd.Stderr = a.screen(), untamed(a.stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %s: %w", editor[0], err)
	}
	return nil
}

// screen is where an editor shows itself: also when the answer goes to a file.
func (a *app) screen() io.Writer {
	if a.width() > 0 {
		return untamed(a.stdout)
	}
	return untamed(a.stderr)
}

// untamed is the terminal behind a writer: an editor does steer it.
func untamed(w io.Writer) io.Writer {
	if t, ok := w.(*tameWriter); ok {
		return t.w
	}
	return w
}

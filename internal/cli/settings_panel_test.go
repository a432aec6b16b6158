package cli

import "testing"

func TestSettingsNeedsATerminal(t *testing.T) {
	w := newWorld(t, &fake{})
	check(t, "no terminal", w.hb("settings"), said{2, "", "hbrestd: error: the panel needs a terminal; without one use hbrestd wrapper, hbrestd secret, hbrestd approval and hbrestd audit\nhbrestd: hint: `hbrestd settings --help` shows how it is used.\n"})
	check(t, "an argument", w.hb("settings", "x"), said{2, "", "hbrestd: error: unexpected argument \"x\"\nhbrestd: hint: `hbrestd settings --help` shows how it is used.\n"})
}

// An agent's command is refused before anything is drawn, unless a person
// allows it in a window.
func TestSettingsAsksForAPerson(t *testing.T) {
	w := newWorld(t, &fake{})
	w.person, w.width = true, 80
	w.env["CLAUDECODE"], w.env["PATH"] = "1", t.TempDir()
	check(t, "an agent", w.hb("settings"), said{4, "", "hbrestd: error: CLAUDECODE is set, so an agent seems to run this command, and only a person may open the panel\n" +
		"hbrestd: hint: Run it in a terminal of your own. Where pinentry can show a window, a person can allow it there.\n"})
}

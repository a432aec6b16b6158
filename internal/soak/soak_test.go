package soak

import (
	"testing"
	"time"
)

func TestRounds(t *testing.T) {
	t.Setenv(Variable, "")
	if Long() || Rounds(3, 1000) != 3 || Time(time.Second, time.Hour) != time.Second {
		t.Errorf("%v, %v, %v", Long(), Rounds(3, 1000), Time(time.Second, time.Hour))
	}
	t.Setenv(Variable, "1")
	if !Long() || Rounds(3, 1000) != 1000 || Time(time.Second, time.Hour) != time.Hour {
		t.Errorf("%v, %v, %v", Long(), Rounds(3, 1000), Time(time.Second, time.Hour))
	}
}

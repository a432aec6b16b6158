package recipe

import (
	"strings"
	"testing"
)

func TestFormatNumber(t *testing.T) {
	number := Format{Kind: KindNumber, Decimals: -1}
	with := func(change func(*Format)) Format {
		f := number
		change(&f)
		return f
	}
	decimals := func(n int) Format { return with(func(f *Format) { f.Decimals = n }) }
	scale := func(s string) Format { return with(func(f *Format) { f.Scale = s }) }
	group := with(func(f *Format) { f.Group = true })
	integer := Format{Kind: KindInteger, Decimals: -1}
	for _, c := range []struct {
		in   string
		f    Format
		want string // "" : not a number
	}{
		{"30.00", number, "30.00"},
		{"9007199254740993", number, "9007199254740993"},
		{"12345678901234567890", number, "12345678901234567890"},
		{"1E+2", number, "100"},
		{"1.50e1", number, "15.0"},
		{"1.5e3", number, "1500"},
		{"1e-7", number, "0.0000001"},
		{"12.5e-1", number, "1.25"},
		{"1e20", number, "100000000000000000000"},
		{"1e21", number, "1e21"},
		{"1e-20", number, "0.00000000000000000001"},
		{"1e-21", number, "1e-21"},
		{"1e400", number, "1e400"},
		{"-1E+400", number, "-1E+400"},
		{"1e99999999999999999999", number, "1e99999999999999999999"},
		{"-0", number, "0"},
		{"-0.00", number, "0.00"},
		{"-0e5", number, "0"},
		{"0e400", number, "0"},
		{"-5", number, "-5"},
		{"-0.02000", number, "-0.02000"},
		{"19.90", number, "19.90"},

		{"", number, ""},
		{"-", number, ""},
		{"+5", number, ""},
		{".5", number, ""},
		{"5.", number, ""},
		{"007", number, ""},
		{"1,234.50", number, ""},
		{"NaN", number, ""},
		{"Infinity", number, ""},
		{"0x10", number, ""},
		{"1e", number, ""},
		{"1e+", number, ""},
		{"1 ", number, ""},
		{"١٢", number, ""},

		{"0.5", decimals(0), "1"},
		{"-0.5", decimals(0), "-1"},
		{"1.5", decimals(0), "2"},
		{"2.5", decimals(0), "3"},
		{"0.49999999999999999999", decimals(0), "0"},
		{"-0.4", decimals(0), "0"},
		{"2.675", decimals(2), "2.68"}, // a float would say 2.67
		{"1.005", decimals(2), "1.01"}, // and 1.00
		{"-1.005", decimals(2), "-1.01"},
		{"9.995", decimals(2), "10.00"},
		{"99.5", decimals(0), "100"},
		{"0.05", decimals(1), "0.1"},
		{"0.04", decimals(1), "0.0"},
		{"0.004", decimals(1), "0.0"},
		{"7", decimals(12), "7.000000000000"},
		{"9007199254740993", decimals(1), "9007199254740993.0"},
		{"1e400", decimals(2), "1e400"},
		{"1e-400", decimals(2), "0.00"},
		{"-0.001", decimals(2), "0.00"},
		{"123456e-25", decimals(3), "0.000"},
		{"123456789012345678901234e-21", decimals(2), "123.46"},

		{"1999", scale("0.01"), "19.99"},
		{"2000", scale("0.01"), "20.00"},
		{"5", scale("0.01"), "0.05"},
		{"0.25", scale("100"), "25"},
		{"0.250", scale("100"), "25.0"},
		{"0.125", scale("1000"), "125"},
		{"9007199254740993", scale("3"), "27021597764222979"},
		{"0.1", scale("0.2"), "0.02"},
		{"-3", scale("-1"), "3"},
		{"7", scale("0"), "0"},
		{"1e400", scale("0.01"), "1e398"},
		{"1.5e400", scale("2"), "3.0e400"},
		{"1e19", scale("1e3"), "10000000000000000000000"},

		{"1234567", group, "1,234,567"},
		{"123", group, "123"},
		{"-1234.5678", group, "-1,234.5678"},
		{"1e6", group, "1,000,000"},

		{"2.5", integer, "3"},
		{"-2.5", integer, "-3"},
		{"9007199254740993.4", integer, "9007199254740993"},
		{"12", integer, "12"},
		{"0.4", integer, "0"},
	} {
		got, ok := formatNumber(c.in, &c.f)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q with %+v = %q, %v; want %q", c.in, c.f, got, ok, c.want)
		}
	}
}

// A literal too long for exact arithmetic stays as it is; one digit less works.
func TestFormatNumberLength(t *testing.T) {
	f := Format{Kind: KindNumber, Decimals: -1, Scale: "2"}
	at := strings.Repeat("1", maxScaledDigits)
	if got, _ := formatNumber(at, &f); got != strings.Repeat("2", maxScaledDigits) {
		t.Errorf("a literal of %d digits was not doubled", maxScaledDigits)
	}
	if got, ok := formatNumber(at+"1", &f); got != at+"1" || !ok {
		t.Errorf("a literal of %d digits changed", maxScaledDigits+1)
	}
}

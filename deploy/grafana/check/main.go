// Checks dashboards against Grafana's schema, strictly: unknown fields, missing ones and wrong values are told.
//
//	go run . FILE...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The kit returns an empty list of errors where there is none.
func real(err error) error {
	var all cog.BuildErrors
	if errors.As(err, &all) && len(all) == 0 {
		return nil
	}
	return err
}

type checked interface {
	UnmarshalJSONStrict(raw []byte) error
	Validate() error
}

func check(part checked, raw []byte) error {
	if err := real(part.UnmarshalJSONStrict(raw)); err != nil {
		return err
	}
	return real(part.Validate())
}

// The kit stops at its own empty list in the first panel, so each panel is checked by itself.
func checkDashboard(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	var panels []json.RawMessage
	if err := json.Unmarshal(fields["panels"], &panels); err != nil {
		return fmt.Errorf("panels: %w", err)
	}
	for i, panel := range panels {
		if err := check(&dashboard.Panel{}, panel); err != nil {
			return fmt.Errorf("panel %d: %w", i, err)
		}
	}
	fields["panels"] = json.RawMessage("[]")
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return check(&dashboard.Dashboard{}, rest)
}

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, path := range os.Args[1:] {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = checkDashboard(raw)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			status = 1
		}
	}
	os.Exit(status)
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// newDaemon serves POST /call/TOOL: the arguments come in, the text goes out.
func newDaemon(api, token string) http.Handler {
	client := newClient()
	mux := http.NewServeMux()
	for _, t := range tools {
		mux.HandleFunc("POST /call/"+t.name, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "not authorised", http.StatusUnauthorized)
				return
			}
			args, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			text, err := t.call(client, api, args, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = w.Write(text) // the caller has gone, which is its business
		})
	}
	return mux
}

func (t tool) call(client *http.Client, api string, args []byte, r *http.Request) ([]byte, error) {
	req, err := t.request(api, args)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req.WithContext(r.Context()))
	if err != nil {
		return nil, err
	}
	body, err := whole(resp)
	if err != nil || t.table == nil {
		return body, err
	}
	return t.table(body)
}

// whole reads an answer that must be one of success.
func whole(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	var body []byte
	var err error
	if resp.ContentLength >= 0 {
		body = make([]byte, resp.ContentLength)
		_, err = io.ReadFull(resp.Body, body)
	} else {
		body, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(body))
	}
	return body, nil
}

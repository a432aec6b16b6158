package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// serveAPI serves:
//
//	GET /objects/ID          an object of about 1 KB
//	GET /products?limit=N    the first N products (10, at most 100), each about 1.4 KB
//	GET /big                 an array of 5 MB of them
//	GET /slow?ms=N           an answer after N ms (200, at most 5000)
//	POST /echo               the body that came
//	GET /stats               {"connections":N} since the start
func serveAPI() error {
	array, total := big()
	pages := make([][]byte, 101) // made once: the API's own work is not what is measured
	for n := range pages {
		pages[n] = products(n, total)
	}
	var connections atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /objects/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.Error(w, `{"message":"no such object"}`, http.StatusNotFound)
			return
		}
		answer(w, order(id))
	})
	mux.HandleFunc("GET /products", func(w http.ResponseWriter, r *http.Request) { answer(w, pages[number(r, "limit", 10, 100)]) })
	mux.HandleFunc("GET /big", func(w http.ResponseWriter, _ *http.Request) { answer(w, array) })
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		ms := number(r, "ms", 200, 5000)
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			answer(w, fmt.Appendf(nil, `{"waited":%d}`, ms))
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, `{"message":"the body did not arrive"}`, http.StatusBadRequest)
			return
		}
		answer(w, body)
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, fmt.Appendf(nil, `{"connections":%d}`, connections.Load()))
	})
	return serve(&http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}})
}

func answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the caller has gone, which is its business
}

// number is a query parameter from 0 to most.
func number(r *http.Request, name string, otherwise, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		n = otherwise
	}
	return min(max(n, 0), most)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	daemon = os.Getenv("STDIO_BUS")
	server = os.Getenv("GO_SERVER")
)

// A daemon with a pool whose processes all clients share: its socket and its URL.
func serve(t *testing.T) (socket, url string) {
	folder := t.TempDir()
	config := filepath.Join(folder, "config.json")
	socket = filepath.Join(folder, "s")
	text, err := json.Marshal(map[string]any{"pools": []any{map[string]any{"id": "pool",
		"command": server, "protocol": "mcp", "clients": "sticky", "instances": 2}}})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	bus := exec.Command(daemon, "--config", config, "--unix", socket, "--http", "127.0.0.1:0")
	stderr, err := bus.StderrPipe()
	if err == nil {
		err = bus.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(found)
		address := regexp.MustCompile(`HTTP at (http://\S+) with`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if at := address.FindStringSubmatch(lines.Text()); at != nil {
				found <- at[1]
			}
		}
	}()
	t.Cleanup(func() {
		bus.Process.Signal(syscall.SIGTERM)
		<-read
		if err := bus.Wait(); err != nil {
			t.Error("the daemon: ", err)
		}
	})
	address := <-found
	if address == "" {
		t.Fatal("the daemon has ended")
	}
	return socket, address + "/mcp"
}

// A client of the official library, and what it has heard.
type person struct {
	name     string
	session  *mcp.ClientSession
	mutex    sync.Mutex
	progress []string
}

func connect(ctx context.Context, t *testing.T, name, version string,
	transport mcp.Transport) *person {
	p := &person{name: name}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult,
			error) {
			return &mcp.ElicitResult{Action: "accept",
				Content: map[string]any{"name": name + ", " + request.Params.Message}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context,
			request *mcp.ProgressNotificationClientRequest) {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.progress = append(p.progress, fmt.Sprint(request.Params.ProgressToken, " ",
				request.Params.Message, " ", request.Params.Progress))
		}})
	session, err := client.Connect(ctx, transport,
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("%s: version %s", name, got)
	}
	p.session = session
	return p
}

func (p *person) call(ctx context.Context, t *testing.T, tool, name, token string) string {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"name": name}}
	if token != "" {
		params.SetProgressToken(token)
	}
	result, err := p.session.CallTool(ctx, params)
	if err != nil {
		t.Fatalf("%s: %s: %v", p.name, tool, err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// Many calls at once, and the progress of one, which comes before its result.
func (p *person) work(ctx context.Context, t *testing.T) {
	tools, err := p.session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 3 {
		t.Fatalf("%s: %v, %v", p.name, tools, err)
	}
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			name := fmt.Sprint(p.name, i)
			if text := p.call(ctx, t, "echo", name, ""); !strings.HasPrefix(text, name+" from ") {
				t.Error(text)
			}
		})
	}
	calls.Wait()
	if text := p.call(ctx, t, "steps", p.name, "token"); text != p.name {
		t.Error(text)
	}
	for range 500 {
		p.mutex.Lock()
		count := len(p.progress)
		p.mutex.Unlock()
		if count >= 3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for i, heard := range p.progress {
		if heard != fmt.Sprintf("token %s %d", p.name, i+1) {
			t.Errorf("%s: %v", p.name, p.progress)
		}
	}
	if len(p.progress) != 3 {
		t.Errorf("%s: %v", p.name, p.progress)
	}
}

const handshake, stateless = "2025-11-25", "2026-07-28"

func started(arguments ...string) mcp.Transport {
	return &mcp.CommandTransport{Command: exec.Command(daemon, arguments...)}
}

func TestEachWayAtOnce(t *testing.T) {
	socket, url := serve(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	t.Run("ways", func(t *testing.T) {
		for _, version := range []string{handshake, stateless} {
			for way, transport := range map[string]mcp.Transport{
				"socket": started("--connect", socket),
				"remote": started("--connect", url),
				"url":    &mcp.StreamableClientTransport{Endpoint: url},
			} {
				t.Run(version+" "+way, func(t *testing.T) {
					t.Parallel()
					p := connect(ctx, t, way+version, version, transport)
					defer p.session.Close()
					p.work(ctx, t)
				})
			}
		}
	})
}

// One client after the other: a question of the handshake era names no client.
func TestQuestions(t *testing.T) {
	socket, url := serve(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for way, transport := range map[string]mcp.Transport{
		"socket": started("--connect", socket),
		"url":    &mcp.StreamableClientTransport{Endpoint: url},
	} {
		p := connect(ctx, t, way, handshake, transport)
		if text := p.call(ctx, t, "ask", "who?", ""); text != "accept: "+way+", who?" {
			t.Error(text)
		}
		p.session.Close()
	}
}

func TestShare(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	pids := map[string]bool{}
	var people []*person
	for i := range 4 {
		people = append(people, connect(ctx, t, fmt.Sprint("person", i), handshake,
			started("--share", "--idle-exit", "1", "--", server)))
	}
	for _, p := range people {
		p.work(ctx, t)
		_, pid, _ := strings.Cut(p.call(ctx, t, "echo", p.name, ""), " from ")
		pids[pid] = true
	}
	for _, p := range people {
		p.session.Close()
	}
	if len(pids) != 1 {
		t.Error("processes: ", pids)
	}
}

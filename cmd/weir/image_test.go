//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// entry is a file or a directory of an archive.
type entry struct {
	*tar.Header
	data []byte
}

func readTar(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(h.Name, "/")] = entry{h, data}
	}
}

// descriptor points to a blob of an image.
type descriptor struct {
	MediaType, Digest string
	Size              int
}

// TestImage unpacks the image that scripts/image builds, and runs its program.
func TestImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building an image takes long")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.tar")
	if out, err := exec.Command("../../scripts/image", file, "weir:test").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image := readTar(t, f)
	blob := func(d descriptor, value any) []byte {
		t.Helper()
		data := image["blobs/"+strings.Replace(d.Digest, ":", "/", 1)].data
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); got != d.Digest || len(data) != d.Size {
			t.Fatalf("got blob %s of %d bytes, want %+v", got, len(data), d)
		}
		if value != nil {
			if err := json.Unmarshal(data, value); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(image["index.json"].data, &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("got index %s: %v", image["index.json"].data, err)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(index.Manifests[0], &manifest)
	var config struct {
		OS     string
		Config struct {
			User            string
			Entrypoint, Cmd []string
		}
		RootFS struct {
			IDs []string `json:"diff_ids"`
		}
	}
	blob(manifest.Config, &config)
	if len(manifest.Layers) != 1 || len(config.RootFS.IDs) != 1 {
		t.Fatalf("got layers %v, %v, want one", manifest.Layers, config.RootFS.IDs)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); got != config.RootFS.IDs[0] {
		t.Errorf("got diff_id %s, want %s", config.RootFS.IDs[0], got)
	}
	root := readTar(t, bytes.NewReader(layer))
	if data := root["var/lib/weir"]; data.Header == nil || data.Uid != 65532 || data.Mode != 0o700 {
		t.Errorf("got %+v, want a directory of the user", data.Header)
	}
	if config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/weir"}) {
		t.Errorf("got %+v", config)
	}
	acceptsServe(t, append(config.Config.Cmd, "--insecure")) // the image has no authentication
	docker := readFile(t, "../../deploy/docker/Dockerfile")
	command := `CMD ["` + strings.Join(config.Config.Cmd, `", "`) + `"]`
	if !strings.Contains(docker, command) {
		t.Errorf("the Dockerfile lacks %s", command)
	}

	program := root["weir"]
	if program.Header == nil || program.Mode != 0o755 {
		t.Fatalf("got program %+v", program.Header)
	}
	if link := root["bin/ratelimit"]; link.Header == nil || link.Linkname != "../weir" {
		t.Errorf("got link %+v, want /bin/ratelimit to lead to the program", link.Header)
	}
	notices := filepath.Join(dir, "notices")
	if err := os.WriteFile(notices, root["licenses/THIRD_PARTY_NOTICES"].data, 0o644); err != nil {
		t.Fatal(err)
	}
	jail := filepath.Join(dir, "root")
	if err := os.Mkdir(jail, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(jail, "weir"), program.data, 0o755); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("go", "run", "../../scripts/notices", "-check", notices, filepath.Join(jail, "weir"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("the image lacks notices: %v\n%s", err, out)
	}
	if len(root["licenses/LICENSE"].data) == 0 {
		t.Error("the image lacks weir's licence")
	}
	if got, err := runIn(jail, "version"); err != nil || !strings.HasPrefix(got, "weir ") {
		t.Errorf("weir version: %v: %s", err, got)
	}
}

package main

import (
	"path"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// Every go.mod is in one entry of the configuration for updates. The published ones are
// where only security raises a requirement. The site's packages have an entry too.
func TestUpdatesCoverEveryModule(t *testing.T) {
	t.Parallel()
	root := tree.Root(t)
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
			Directory   string
			Limit       *int `yaml:"open-pull-requests-limit"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, root, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	folders, err := goModFolders(t.Context(), &repository{dir: root})
	if err != nil {
		t.Skip("without git, as in a source archive: ", err)
	}
	used := map[string]bool{}
	for _, folder := range folders {
		entries, security := 0, false
		for _, update := range config.Updates {
			for _, pattern := range update.Directories {
				if ok, err := path.Match(pattern, "/"+folder); err != nil {
					t.Fatal(err)
				} else if ok && update.Ecosystem == "gomod" {
					entries++
					used[pattern] = true
					security = update.Limit != nil && *update.Limit == 0
				}
			}
		}
		if entries != 1 {
			t.Errorf("%s is in %d entries of .github/dependabot.yml, want 1", folder, entries)
		}
		if published(folder) && !security {
			t.Errorf("%s is published: a newer requirement reaches its users, so the entry needs open-pull-requests-limit: 0", folder)
		}
	}
	site := false
	for _, update := range config.Updates {
		site = site || update.Ecosystem == "npm" && update.Directory == "/site"
		for _, pattern := range update.Directories {
			if !used[pattern] {
				t.Errorf("%s of .github/dependabot.yml has no go.mod", pattern)
			}
		}
	}
	if !site {
		t.Error("site/package.json is in no entry of .github/dependabot.yml")
	}
}

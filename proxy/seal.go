package proxy

import (
	"fmt"
	"os"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

// Seal encrypts the responses that records keep, see [protocol.Sealing] and
// docs/guides/sealing.md.
type Seal struct {
	Secret       Secret   `toml:"secret"` // of the responses that are recorded from now on
	OtherSecrets []Secret `toml:"other_secrets"`
	ClearHead    bool     `toml:"clear_head"`
	Strict       bool     `toml:"strict"`
	MaxAge       Duration `toml:"max_age"`
}

// Secret is a master secret in a file, whose bytes are the secret, see
// [protocol.NewSecret]. The file is read when a configuration begins to be used.
type Secret struct {
	ID   string `toml:"id"`
	File string `toml:"file"`
}

// read returns the policy with the secrets of the files.
func (s *Seal) read() (protocol.Sealing, error) {
	sealing := protocol.Sealing{ClearHead: s.ClearHead, Strict: s.Strict, MaxAge: time.Duration(s.MaxAge)}
	var err error
	if s.Secret != (Secret{}) {
		if sealing.Secret, err = s.Secret.read(); err != nil {
			return sealing, fmt.Errorf("proxy: seal.secret: %w", err)
		}
	}
	for _, one := range s.OtherSecrets {
		other, err := one.read()
		if err != nil {
			return sealing, fmt.Errorf("proxy: seal.other_secrets: %w", err)
		}
		sealing.OtherSecrets = append(sealing.OtherSecrets, other)
	}
	return sealing, nil
}

func (s Secret) read() (protocol.Secret, error) {
	key, err := os.ReadFile(s.File)
	if err != nil {
		return protocol.Secret{}, err
	}
	return protocol.NewSecret(s.ID, key)
}

package reprisesqlite

import "syscall"

// networkFilesystems names network file systems by the type that statfs(2) reports.
var networkFilesystems = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9P",
	0x00c36400: "Ceph", 0x5346414f: "AFS", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x01161970: "GFS2", 0x7461636f: "OCFS2",
}

// filesystem returns the name of the network file system that a file is on, or an empty
// text for a local one, and how much of its space is used, in percent.
func filesystem(file string) (network string, used uint64) {
	var s syscall.Statfs_t
	if syscall.Statfs(file, &s) != nil {
		return "", 0
	}
	taken := s.Blocks - s.Bfree
	return networkFilesystems[uint32(s.Type)], 100 * taken / max(taken+s.Bavail, 1) //nolint:gosec // a kind has 32 bits
}

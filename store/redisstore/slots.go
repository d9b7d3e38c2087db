package redisstore

import "bytes"

// slotCount is how many slots a cluster shares its keys among.
const slotCount = 16384

// slotOf is the cluster slot of a key: a checksum of what stands between its
// first { and the next }, or of all of it when nothing does.
func slotOf(key []byte) int {
	if from := bytes.IndexByte(key, '{'); from >= 0 {
		if n := bytes.IndexByte(key[from+1:], '}'); n > 0 {
			key = key[from+1 : from+1+n]
		}
	}
	return int(crc16(key) % slotCount)
}

// crc16 is the CRC-16/XMODEM that the cluster specification asks for.
func crc16(b []byte) (sum uint16) {
	for _, c := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>8)^c]
	}
	return sum
}

var crcTable = makeCRCTable()

func makeCRCTable() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum&0x8000 != 0
			sum <<= 1
			if carry {
				sum ^= 0x1021
			}
		}
		table[i] = sum
	}
	return table
}

/**
 * CRC-32C (Castagnoli) of a record batch, eight bytes a step ("slicing by 8": Kounavis and Berry, 2005): the checksum of every byte that is published.
 */

const polynomial = 0x82f63b78

/** Eight tables of 256: the `n`th is the checksum of a byte with `n` zero bytes behind it. */
const tables = (() => {
  const all = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ polynomial
    all[byte] = crc
  }
  for (let index = 256; index < all.length; index++) {
    const before = all[index - 256]!
    all[index] = all[before & 0xff]! ^ (before >>> 8)
  }
  return all
})()

/** 0 to 2^32 - 1. */
export const crc32c = (bytes: Uint8Array): number => {
  let crc = -1
  let at = 0
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc =
      tables[1792 + (crc & 0xff)]! ^
      tables[1536 + ((crc >>> 8) & 0xff)]! ^
      tables[1280 + ((crc >>> 16) & 0xff)]! ^
      tables[1024 + (crc >>> 24)]! ^
      tables[768 + bytes[at + 4]!]! ^
      tables[512 + bytes[at + 5]!]! ^
      tables[256 + bytes[at + 6]!]! ^
      tables[bytes[at + 7]!]!
  }
  for (; at < bytes.length; at++) crc = tables[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

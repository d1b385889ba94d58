/** Reads from the metadata of a commit which offsets behind it are finished (`docs/formats.md`), independently of the connector. */

/** Offsets that the commit calls finished. */
export const of = (metadata: string): ReadonlySet<bigint> => {
  const [, first = "", encoded = ""] = /;done=(\d+):([^;]*)/.exec(metadata) ?? []
  const finished = new Set<bigint>()
  for (const [index, byte] of Buffer.from(encoded, "base64").entries()) {
    for (let bit = 0; bit < 8; bit++)
      if ((byte & (1 << bit)) !== 0) finished.add(BigInt(first) + BigInt(index * 8 + bit))
  }
  return finished
}

/** The codecs of Kafka's record batches, by the number that the attributes of a batch hold. */

/** A codec by name. `none` leaves bytes as they are. */
export type CodecName = "none" | "gzip" | "snappy" | "lz4" | "zstd"

const names: ReadonlyArray<CodecName> = ["none", "gzip", "snappy", "lz4", "zstd"]

/** The codec of a number; undefined for a number that Kafka has not given to a codec. */
export const codecOf = (id: number): CodecName | undefined => names[id]

export const codecId = (name: CodecName): number => names.indexOf(name)

export const isCodecName = (name: string): name is CodecName => names.includes(name as CodecName)

/** Cuts the bytes of a connection into answers, whatever pieces they come in. Each byte is copied once at most. */

/** The longest answer that is read. A longer one is no answer of Kafka: the first bytes of HTTP are a length of more than a gigabyte. */
const maxAnswerBytes = 256 * 1024 * 1024

const lengthBytes = 4
const correlationIdBytes = 4

export class Frames {
  #pieces: Array<Buffer> = []
  #have = 0
  /** Bytes until the next answer, or its length, is whole. */
  #need = lengthBytes

  /** Calls `onAnswer` for each answer that is whole now, with its bytes behind the correlation id. Throws a RangeError for an impossible length. */
  read(piece: Buffer, onAnswer: (correlationId: number, answer: Buffer) => void): void {
    this.#pieces.push(piece)
    this.#have += piece.length
    if (this.#have < this.#need) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#have)
    let at = 0
    let need = this.#needAt(bytes, at)
    while (bytes.length - at >= need && need > lengthBytes) {
      const correlationId = bytes.readInt32BE(at + lengthBytes)
      onAnswer(correlationId, bytes.subarray(at + lengthBytes + correlationIdBytes, at + need))
      at += need
      need = this.#needAt(bytes, at)
    }
    this.#pieces = at === bytes.length ? [] : [bytes.subarray(at)]
    this.#have = bytes.length - at
    this.#need = need
  }

  #needAt(bytes: Buffer, at: number): number {
    if (bytes.length - at < lengthBytes) return lengthBytes
    const length = bytes.readInt32BE(at)
    if (length < correlationIdBytes || length > maxAnswerBytes) {
      throw new RangeError(`the listener announced ${length} bytes`)
    }
    return lengthBytes + length
  }
}

/**
 * Cuts the bytes of a connection into answers, whatever pieces they come in. The socket reads into the room that this gives it: the rest of a long answer goes
 * straight to where it stays, and every other byte is copied once.
 */

/** The longest answer that is read. A longer one is no answer of Kafka: the first bytes of HTTP are a length of more than a gigabyte. */
const maxAnswerBytes = 256 * 1024 * 1024

const lengthBytes = 4
const correlationIdBytes = 4

/** The room for answers whose length is not known yet. */
const roomBytes = 64 * 1024

/** `answer`: the bytes behind the correlation id. They belong to whoever is called. */
export type OnAnswer = (correlationId: number, answer: Buffer) => void

const announced = (bytes: Buffer, at: number): number => {
  const length = bytes.readInt32BE(at)
  if (length >= correlationIdBytes && length <= maxAnswerBytes) return length
  throw new RangeError(`the listener announced ${length} bytes`)
}

export class Frames {
  readonly #onAnswer: OnAnswer
  /** Bytes from the beginning of an answer on. */
  readonly #room = Buffer.allocUnsafeSlow(roomBytes)
  #filled = 0
  /** An answer that has not come as a whole. */
  #answer: Buffer | undefined
  #answerFilled = 0

  /** `onAnswer` is called for each answer that is whole. */
  constructor(onAnswer: OnAnswer) {
    this.#onAnswer = onAnswer
  }

  /** Where the next bytes go: at least one byte. */
  room(): Buffer {
    return this.#answer === undefined ? this.#room.subarray(this.#filled) : this.#answer.subarray(this.#answerFilled)
  }

  /** So many bytes have come into `room()`. Throws a RangeError for an impossible length, and what `onAnswer` throws. */
  take(bytes: number): void {
    if (this.#answer === undefined) this.#cut(this.#filled + bytes)
    else this.#goOn(this.#answer, bytes)
  }

  /** `end`: where the bytes in the room end. */
  #cut(end: number): void {
    let at = 0
    while (end - at >= lengthBytes) {
      const from = at + lengthBytes
      const length = announced(this.#room, at)
      const answer = Buffer.allocUnsafe(length)
      const copied = this.#room.copy(answer, 0, from, Math.min(end, from + length))
      at = from + copied
      if (copied === length) {
        this.#whole(answer)
        continue
      }
      this.#answer = answer
      this.#answerFilled = copied
    }
    this.#filled = this.#room.copy(this.#room, 0, at, end)
  }

  #goOn(answer: Buffer, bytes: number): void {
    this.#answerFilled += bytes
    if (this.#answerFilled < answer.length) return
    this.#answer = undefined
    this.#whole(answer)
  }

  #whole(answer: Buffer): void {
    this.#onAnswer(answer.readInt32BE(0), answer.subarray(correlationIdBytes))
  }
}

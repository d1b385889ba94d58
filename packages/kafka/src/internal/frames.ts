/** Cuts the bytes of a connection into answers, whatever pieces they come in. Each byte is copied once at most. */

/** The longest answer that is read. A longer one is no answer of Kafka: the first bytes of HTTP are a length of more than a gigabyte. */
const maxAnswerBytes = 256 * 1024 * 1024

const lengthBytes = 4
const correlationIdBytes = 4

/** `answer`: the bytes behind the correlation id. */
export type OnAnswer = (correlationId: number, answer: Buffer) => void

const announced = (bytes: Buffer, at: number): number => {
  const length = bytes.readInt32BE(at)
  if (length >= correlationIdBytes && length <= maxAnswerBytes) return length
  throw new RangeError(`the listener announced ${length} bytes`)
}

export class Frames {
  readonly #onAnswer: OnAnswer
  /** The length of the next answer, while it comes in parts. */
  readonly #length = Buffer.alloc(lengthBytes)
  #lengthFilled = 0
  /** The room for an answer that comes in parts. */
  #answer: Buffer | undefined
  #answerFilled = 0

  /** `onAnswer` is called for each answer that is whole. */
  constructor(onAnswer: OnAnswer) {
    this.#onAnswer = onAnswer
  }

  /** Throws a RangeError for an impossible length, and what `onAnswer` throws. */
  read(piece: Buffer): void {
    for (let at = 0; at < piece.length; )
      at = this.#answer === undefined ? this.#begin(piece, at) : this.#fill(piece, at)
  }

  /** Each method takes bytes of `piece` from `at`, and returns where the next ones begin. */
  #begin(piece: Buffer, at: number): number {
    const from = at + lengthBytes
    if (this.#lengthFilled > 0 || from > piece.length) return this.#fillLength(piece, at)
    const length = announced(piece, at)
    const to = from + length
    if (to > piece.length) {
      this.#expect(length)
      return from
    }
    this.#whole(piece.subarray(from, to))
    return to
  }

  #fillLength(piece: Buffer, at: number): number {
    const taken = piece.copy(this.#length, this.#lengthFilled, at)
    this.#lengthFilled += taken
    if (this.#lengthFilled === lengthBytes) {
      this.#lengthFilled = 0
      this.#expect(announced(this.#length, 0))
    }
    return at + taken
  }

  #expect(length: number): void {
    this.#answer = Buffer.allocUnsafe(length)
    this.#answerFilled = 0
  }

  #fill(piece: Buffer, at: number): number {
    const answer = this.#answer!
    const taken = piece.copy(answer, this.#answerFilled, at)
    this.#answerFilled += taken
    if (this.#answerFilled === answer.length) {
      this.#answer = undefined
      this.#whole(answer)
    }
    return at + taken
  }

  #whole(answer: Buffer): void {
    this.#onAnswer(answer.readInt32BE(0), answer.subarray(correlationIdBytes))
  }
}

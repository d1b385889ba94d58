/** The failure of a codec. Everything else that a codec throws is a bug. */

/**
 * - `broken`: the bytes are not what the codec writes.
 * - `tooLarge`: reading them would take more memory than allowed.
 * - `tooFar`: the same, because the data refers back to more than is kept. A decoder that keeps more can read it.
 * - `unknown`: this program cannot read or write the codec.
 */
export type CodecFailure = "broken" | "tooLarge" | "tooFar" | "unknown"

export class CodecError extends Error {
  readonly failure: CodecFailure

  constructor(failure: CodecFailure, message: string) {
    super(message)
    this.name = "CodecError"
    this.failure = failure
  }
}

export const broken = (message: string): CodecError => new CodecError("broken", message)

export const cut = (): CodecError => broken("the data ends too early")

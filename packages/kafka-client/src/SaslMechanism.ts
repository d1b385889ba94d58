/** The exchange of one authentication by SASL (RFC 4422), as Kafka carries it in SaslAuthenticate. It knows the mechanism, and nothing of connections. */

/** The client's side of one exchange. */
export interface SaslMechanism {
  /** The client's first message. */
  readonly start: () => Buffer
  /**
   * Takes an answer of the broker; returns the next message, or undefined when the exchange is done. Throws an `Error` when the broker does not prove
   * itself, or refuses.
   */
  readonly next: (answer: Buffer) => Buffer | undefined
  /** Called when the broker refused the credentials, so that they are not used again. */
  readonly refused?: () => void
}

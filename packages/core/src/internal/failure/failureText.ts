/**
 * A failure in one line, its causes included: for log lines.
 */
import type { ErrorSummary, Failure } from "../../Failure.ts"

/** Characters of one message. */
const mostOfOne = 1_024

/** Characters of the line. */
const most = 4_096

/** `GatewayDown: 503 from the gateway, caused by Error: connect ECONNREFUSED 10.0.0.7:443`. A long message is cut, and so is a long line. */
export const failureText = (failure: Failure): string =>
  cut([failure, ...failure.causes].map(summaryText).join(", caused by "), most)

const summaryText = ({ className, message }: ErrorSummary): string =>
  message === "" ? className : `${className}: ${cut(message, mostOfOne)}`

const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length - 1)}…` : text)

/**
 * A defect of a background task as a broker error, so that the task's retry treats both alike.
 */
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import * as Failure from "./failure.ts"

/** `operation` is the task that died: `consume` or `replay`. */
export const toBrokerError = (operation: string, defect: unknown): BrokerError => {
  const { className, message } = Failure.fromUnknown(defect)
  return new UnexpectedBrokerError({ operation, code: className, detail: message, retryable: true })
}

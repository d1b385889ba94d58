/**
 * The requests of transactions that brokers add partitions and groups to themselves (KIP-890, Kafka 4.0). Each transaction has an epoch of its own, so a late request of a former
 * one is refused.
 */
import * as Effect from "effect/Effect"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import {
  askCoordinator,
  commitOffsets,
  identityOf,
  type Requester,
  retryTransient,
  type TransactionRequests
} from "./transactionRequests.ts"

export const implicitTransactions = (requester: Requester): TransactionRequests => {
  const repeated = retryTransient(requester.millis)
  const end: TransactionRequests["end"] = (outcome) =>
    Effect.gen(function* () {
      const transactionResult = outcome === "commit"
      const answer = yield* askCoordinator(requester, (coordinator) =>
        call(coordinator, "EndTxnBumping", { ...identityOf(requester), transactionResult })
      )
      yield* check(answer.errorCode)
      return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
    }).pipe(repeated)
  return {
    addPartitions: () => Effect.void,
    sendOffsets: (member, offsets) => repeated(commitOffsets(requester, "TxnOffsetCommitAdding", member, offsets)),
    end,
    assertOwner: () => Effect.asVoid(end("abort"))
  }
}

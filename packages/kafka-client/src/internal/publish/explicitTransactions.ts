/** The requests of transactions on brokers before 4.0: partitions and groups are added by requests of their own, and one epoch serves many transactions. */
import * as Effect from "effect/Effect"
import { byTopic } from "../wire/byTopic.ts"
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

/** Code of partitions that were not tried because another one failed. */
const operationNotAttempted = 55

export const explicitTransactions = (requester: Requester): TransactionRequests => {
  const repeated = retryTransient(requester.millis)
  const addGroup = Effect.fnUntraced(function* (groupId: string) {
    const answer = yield* askCoordinator(requester, (coordinator) =>
      call(coordinator, "AddOffsetsToTxn", { ...identityOf(requester), groupId })
    )
    yield* check(answer.errorCode)
  })
  const addPartitions: TransactionRequests["addPartitions"] = (partitions) =>
    Effect.gen(function* () {
      const topics = byTopic(partitions, ({ partition }) => partition)
      const answer = yield* askCoordinator(requester, (coordinator) =>
        call(coordinator, "AddPartitionsToTxn", { ...identityOf(requester), topics })
      )
      const codes = answer.errors.flatMap(({ partitionErrors }) => partitionErrors.map(({ errorCode }) => errorCode))
      yield* check(...codes.filter((code) => code !== operationNotAttempted))
    }).pipe(repeated)
  return {
    addPartitions,
    sendOffsets: (member, offsets) =>
      repeated(Effect.andThen(addGroup(member.groupId), commitOffsets(requester, "TxnOffsetCommit", member, offsets))),
    end: (outcome) =>
      Effect.gen(function* () {
        const transactionResult = outcome === "commit"
        const answer = yield* askCoordinator(requester, (coordinator) =>
          call(coordinator, "EndTxn", { ...identityOf(requester), transactionResult })
        )
        yield* check(answer.errorCode)
        return requester.identity()
      }).pipe(repeated),
    assertOwner: ({ partition, groupId }) => {
      if (partition !== undefined) return addPartitions([partition])
      return groupId === undefined ? Effect.void : repeated(addGroup(groupId))
    }
  }
}

/**
 * The current producer of each transactional id, and the partitions and offsets of its open transaction. It owns epochs and open transactions.
 */
import { BrokerError, type ConsumerRecord } from "@eventbus/core"
import type { ConsumerGroup } from "./consumerGroup.ts"
import type { Kernel } from "./kernel.ts"
import type { PartitionLog, TransactionMark } from "./partitionLog.ts"

interface PendingOffset extends ConsumerRecord.TopicPartition {
  readonly groupId: string
  readonly offset: bigint
  readonly metadata: string
}

interface OpenTransaction {
  readonly mark: TransactionMark
  readonly logs: Set<PartitionLog>
  readonly offsets: Array<PendingOffset>
}

interface TransactionalIdState {
  epoch: number
  open: OpenTransaction | undefined
  cancelTimeout: () => void
}

/** One producer's epoch of a transactional id. */
export interface ProducerEpoch {
  readonly transactionalId: string
  readonly epoch: number
  readonly timeoutMillis: number
}

export class TransactionCoordinator {
  private readonly identities = new Map<string, TransactionalIdState>()
  private readonly kernel: Kernel
  private readonly group: (groupId: string) => ConsumerGroup

  constructor(kernel: Kernel, group: (groupId: string) => ConsumerGroup) {
    this.kernel = kernel
    this.group = group
  }

  /** InitProducerId: makes a producer the current one, fences older producers and aborts their open transactions. */
  initProducerId(transactionalId: string, timeoutMillis: number): ProducerEpoch {
    const identity = this.identities.get(transactionalId) ?? { epoch: -1, open: undefined, cancelTimeout: () => {} }
    this.identities.set(transactionalId, identity)
    this.finish(transactionalId, identity, "aborted")
    identity.epoch++
    return { transactionalId, epoch: identity.epoch, timeoutMillis }
  }

  /** The open transaction of a producer; begins one when there is none. After the transaction timeout it is aborted and its producer fenced. */
  current(epoch: ProducerEpoch): OpenTransaction | BrokerError.ProducerFenced {
    const identity = this.identities.get(epoch.transactionalId)
    if (!identity || identity.epoch !== epoch.epoch) return fenced(epoch)
    if (!identity.open) {
      identity.open = { mark: { state: "open" }, logs: new Set(), offsets: [] }
      identity.cancelTimeout = this.kernel.after(epoch.timeoutMillis, () => {
        this.finish(epoch.transactionalId, identity, "aborted")
        identity.epoch++
      })
    }
    return identity.open
  }

  end(epoch: ProducerEpoch, outcome: "committed" | "aborted"): BrokerError.ProducerFenced | undefined {
    const identity = this.identities.get(epoch.transactionalId)
    if (!identity || identity.epoch !== epoch.epoch) return fenced(epoch)
    this.finish(epoch.transactionalId, identity, outcome)
    return undefined
  }

  private finish(transactionalId: string, identity: TransactionalIdState, outcome: "committed" | "aborted"): void {
    const { open } = identity
    if (!open) return
    identity.open = undefined
    identity.cancelTimeout()
    open.mark.state = outcome
    for (const log of open.logs) log.endTransaction(open.mark)
    if (outcome === "aborted") return
    for (const { groupId, topic, partition, offset, metadata } of open.offsets) {
      const memberId = `transaction:${transactionalId}`
      this.group(groupId).offsets.record({ topic, partition, offset, memberId, generation: -1, metadata })
    }
  }
}

const fenced = ({ transactionalId }: ProducerEpoch): BrokerError.ProducerFenced =>
  new BrokerError.ProducerFenced({ transactionalId })

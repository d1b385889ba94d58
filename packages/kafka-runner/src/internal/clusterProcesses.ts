/** The running brokers of one cluster. Owns their processes: closing the Scope kills those that are left. */
import { type Duration, Effect, Schedule, type Scope } from "effect"
import { StartFailed } from "../RealKafkaError.ts"
import { type BrokerCommand, type BrokerProcess, logTail } from "./brokerProcess.ts"
import { describeCluster } from "./describeCluster.ts"
import type { PreparedBroker, PreparedCluster } from "./prepareCluster.ts"

export interface ClusterProcesses {
  readonly launch: (nodeId: number) => Effect.Effect<BrokerProcess>
  readonly end: (nodeId: number, signal: "SIGTERM" | "SIGKILL") => Effect.Effect<void>
  readonly signal: (nodeId: number, signal: "SIGSTOP" | "SIGCONT") => Effect.Effect<void>
  /** Waits until every running broker lists all of them. Fails as soon as one of them ends. */
  readonly awaitReady: (timeout: Duration.Input) => Effect.Effect<void, StartFailed>
}

export const makeClusterProcesses = Effect.fnUntraced(function* (
  cluster: PreparedCluster,
  spawn: (command: BrokerCommand) => BrokerProcess
): Effect.fn.Return<ClusterProcesses, never, Scope.Scope> {
  const processes = new Map<number, BrokerProcess>()
  yield* Effect.addFinalizer(() =>
    Effect.forEach([...processes.values()], (broker) => broker.end("SIGKILL"), {
      concurrency: "unbounded",
      discard: true
    })
  )

  const brokerOf = (nodeId: number): PreparedBroker => {
    const broker = cluster.brokers.get(nodeId)
    if (broker === undefined) throw new Error(`There is no broker ${nodeId}.`)
    return broker
  }
  const withProcess = (nodeId: number, use: (broker: BrokerProcess) => Effect.Effect<void>) =>
    Effect.suspend(() => {
      brokerOf(nodeId)
      const broker = processes.get(nodeId)
      return broker === undefined ? Effect.void : use(broker)
    })
  const running = () => [...processes].filter(([, broker]) => broker.isRunning())

  const failWithLog = (nodeId: number, detail: string) =>
    logTail(brokerOf(nodeId).command.logFile).pipe(
      Effect.flatMap((log) => Effect.fail(new StartFailed({ detail, log })))
    )

  const failAtExit = ([nodeId, broker]: readonly [number, BrokerProcess]) =>
    Effect.andThen(
      Effect.promise(() => broker.exited),
      failWithLog(nodeId, `broker ${nodeId} ended`)
    )

  const awaitMember = (nodeId: number, members: ReadonlyArray<number>, timeout: Duration.Input) => {
    let last = "no answer yet"
    return describeCluster(brokerOf(nodeId).internalAddress, members).pipe(
      Effect.tapError((notReady) => Effect.sync(() => (last = notReady.detail))),
      Effect.retry(Schedule.spaced("250 millis")),
      Effect.orDie, // Unreachable: a failure is retried.
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.suspend(() => failWithLog(nodeId, `broker ${nodeId} is not ready in time: ${last}`))
      })
    )
  }

  const awaitReady = (timeout: Duration.Input) =>
    Effect.suspend(() => {
      const expected = running()
      const members = expected.map(([nodeId]) => nodeId)
      return Effect.raceFirst(
        Effect.forEach(members, (nodeId) => awaitMember(nodeId, members, timeout), {
          concurrency: "unbounded", // three at most
          discard: true
        }),
        Effect.raceAllFirst(expected.map(failAtExit))
      )
    })

  return {
    launch: (nodeId) =>
      Effect.sync(() => {
        const { command } = brokerOf(nodeId)
        if (processes.get(nodeId)?.isRunning()) throw new Error(`Broker ${nodeId} is running.`)
        const broker = spawn(command)
        processes.set(nodeId, broker)
        return broker
      }),
    end: (nodeId, signal) => withProcess(nodeId, (broker) => broker.end(signal)),
    signal: (nodeId, signal) => withProcess(nodeId, (broker) => broker.signal(signal)),
    awaitReady
  }
})

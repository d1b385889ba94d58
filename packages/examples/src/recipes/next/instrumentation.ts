/**
 * Next calls `register` once for each server, before it answers any request. `NEXT_MANUAL_SIG_HANDLE=true` leaves SIGTERM to the program: without it `next start` ends the
 * process while handlers run.
 */
export const register = async (): Promise<void> => {
  if (process.env["NEXT_RUNTIME"] !== "nodejs") return
  const { service } = await import("./service.ts")
  const { bus, stopAtSigterm } = await service()
  stopAtSigterm(() => process.exit(0))
  await bus.start()
}

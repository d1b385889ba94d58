/**
 * Next calls `register` once for each server, before it answers any request. `NEXT_MANUAL_SIG_HANDLE=true` leaves SIGTERM to the program: without it `next start` ends the
 * process while handlers run. Next compiles this file for its edge runtime, too, and drops the import there only when it stands behind the comparison itself.
 */
export const register = async (): Promise<void> => {
  if (process.env["NEXT_RUNTIME"] === "nodejs") await (await import("./service.ts")).start()
}

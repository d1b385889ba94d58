/** True when a process with this id exists. An ended process exists until its parent has waited for it. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Whether a process with this id exists (a finished one that nobody has waited for still does). */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Values of several series put on top of each other: the first series is the lowest. */
export function stack(values: ReadonlyArray<readonly number[]>): number[][] {
  const heights: number[] = [];
  return values.map((series) =>
    series.map((value, index) => {
      heights[index] = (heights[index] ?? 0) + value;
      return heights[index];
    }),
  );
}

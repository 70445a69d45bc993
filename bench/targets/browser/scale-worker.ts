/** The worker of the `scale` run. */

import { removeScaleStore, runScale, type ScaleEvent, type ScalePlan } from '../../suites/scale/phases.ts';

const scope = self as unknown as DedicatedWorkerGlobalScope;
const post = (event: ScaleEvent): void => scope.postMessage(event);

scope.onmessage = ({ data }: MessageEvent<ScalePlan | 'remove'>) => {
  if (data === 'remove') {
    removeScaleStore().finally(() => scope.close());
    return;
  }
  runScale(data, post).then(
    () => post({ type: 'ended', error: undefined }),
    (error: unknown) => post({ type: 'ended', error: error instanceof Error ? error.message : String(error) }),
  );
};

import copy, json, sys, time, torch, numpy as np, torch.nn.functional as F
torch.set_num_threads(1)
import recollect as rc
from recollect.packing import unpack_checked
def codes_of(mem, slots):
    return torch.from_numpy(unpack_checked(mem._index.codes.read(slots), mem.codec.variables, mem.codec.categories, mem.scheme))
def logits(codec, x): return codec._bottleneck(x).reshape(len(x), codec.variables, codec.categories)
def run(seed, how, tasks=6, n=400, warm=20, after=3, tag=''):
    stream = rc.streams.mnist_rotations(seed, tasks=tasks, train_examples=n, test_examples=1000, validation=True)
    codec = rc.DiscreteAutoencoder((1,28,28), 104, 4, seed=seed)
    coded = rc.Memory(codec, capacity=3000, classes=10, tasks=tasks, seed=seed)
    raw_until = how.get('raw', 0)
    mem = rc.Memory(rc.RawPixels((1,28,28)), capacity=99, classes=10, tasks=tasks, seed=seed) if raw_until else coded
    opt = torch.optim.Adam(codec.parameters(), lr=1e-3, fused=True)
    model = rc.models.MLP(seed=seed); sgd = torch.optim.SGD(model.parameters(), lr=0.2)
    originals = torch.cat([t.train.x for t in stream]); taskof = torch.arange(tasks).repeat_interleave(n)
    offset = 0; idmap = {}
    ema = copy.deepcopy(codec.decoder) if how.get('ema') else None
    eenc = copy.deepcopy(codec.encoder) if how.get('enc') else None
    def enc(f):
        live = codec.encoder
        if eenc is not None: codec.encoder = eenc
        try: return f()
        finally: codec.encoder = live
    probes = {d: copy.deepcopy(codec.decoder) for d in (0.9,0.97,0.99,0.995,0.998,0.999)} if how.get('probe') else {}
    snap = None; snap_seen = 0
    anchor, sweep = how.get('anchor'), how.get('sweep')
    out = []
    def ids_true(ids): return torch.tensor([idmap.get(int(i), int(i)+offset) for i in ids])
    def dec_with(dec, codes):
        live = codec.decoder; codec.decoder = dec
        try: return codec.decode(codes)
        finally: codec.decoder = live
    def decode_now(codes): return dec_with(ema, codes) if ema is not None else codec.decode(codes)
    seen = 0
    def draw(k):
        if mem is not coded:
            b = mem.sample(k); return b.x, b.y, None
        slots = mem._admission.slots(mem._sample_rng.integers(0, len(mem), k))
        c = codes_of(mem, slots)
        return decode_now(c), torch.from_numpy(mem._index.labels.read_integers(slots)), c
    t0 = time.process_time()
    for t, task in enumerate(stream):
        for x, y in task.train.batches(10):
            if mem is not coded and seen >= raw_until:
                b = mem.recollections(); old = mem; mem = coded
                idmap = {i: int(j) for i, j in enumerate(b.ids)}; offset = raw_until - len(b)
                for part in torch.arange(len(b)).split(100): mem.write(b.x[part], b.y[part], b.task[part])
            steps = warm if seen < n else after
            held = len(mem)
            if (anchor or sweep) and mem is coded and seen >= how.get('start', n) and (snap is None or seen - snap_seen >= (anchor or sweep)):
                if sweep and snap is not None:
                    sl = mem._admission.slots(np.arange(len(mem))); ids = ids_true(mem._index.ids.read_integers(sl))
                    sl = sl[(ids < snap_seen).numpy()]
                    if len(sl):
                        c = codes_of(mem, sl)
                        xs = torch.cat([dec_with(snap, p) for p in c.split(500)])
                        c2 = torch.cat([codec.encode(p, stochastic=False) for p in xs.split(500)])
                        e1 = (torch.cat([codec.decode(p) for p in c.split(500)]) - xs).abs().flatten(1).mean(1)
                        e2 = (torch.cat([codec.decode(p) for p in c2.split(500)]) - xs).abs().flatten(1).mean(1)
                        better = (e2 < e1)
                        mem._index.codes.write(sl[better.numpy()], rc.pack(c2[better].numpy(), categories=4))
                        print(tag, 'sweep at', seen, 'of', len(sl), 'better', int(better.sum()), float(e1.mean()), float(e2.mean()), flush=True)
                snap = copy.deepcopy(codec.decoder); snap_seen = seen
            for s in range(steps):
                opt.zero_grad()
                if held:
                    ox, oy, oc = draw(10)
                    if anchor and oc is not None and snap is not None:
                        with torch.no_grad(): target = dec_with(snap, oc)
                        l = 0.5*codec.loss(x) + 0.5*F.binary_cross_entropy_with_logits(codec._picture(F.one_hot(oc,4).float()), target)
                        lam = how.get('lam', 0.1)
                        if lam: l = l + 0.5*lam*F.cross_entropy(logits(codec, target).flatten(0,1), oc.flatten())
                        if how.get('both'): l = l + 0.5*codec.loss(target)
                    elif how.get('none'): l = codec.loss(x)
                    else: l = codec.loss(torch.cat([x, ox]))
                else: l = codec.loss(x)
                l.backward(); opt.step()
                for d, m in probes.items():
                    with torch.no_grad():
                        for a, b in zip(m.parameters(), codec.decoder.parameters()): a.lerp_(b, 1-d)
                if ema is not None:
                    with torch.no_grad():
                        d = how['ema'] if seen >= n else 0.9
                        for a, b in zip(ema.parameters(), codec.decoder.parameters()): a.lerp_(b, 1-d)
                        if eenc is not None:
                            for a, b in zip(eenc.parameters(), codec.encoder.parameters()): a.lerp_(b, 1-d)
            for s in range(3):
                X, Y = x, y
                if held:
                    ox, oy, _ = draw(25); X, Y = torch.cat([x, ox]), torch.cat([y, oy])
                sgd.zero_grad(); F.cross_entropy(model(X), Y).backward(); sgd.step()
            if how.get('det') and mem is coded:
                codec.stochastic = False; mem.write(x, y, t); codec.stochastic = True
            else: enc(lambda: mem.write(x, y, t))
            seen += len(x)
        # measure
        b = mem.recollections()
        ids = ids_true(b.ids) if mem is coded else b.ids
        if mem is coded: 
            sl = mem._admission.slots(np.arange(len(mem))); bx = torch.cat([decode_now(p) for p in codes_of(mem, sl).split(500)])
        else: bx = b.x
        orig = originals[ids]; st = codec._generator.get_state()
        fresh = torch.cat([decode_now(enc(lambda p=p: codec.encode(p))) for p in orig.split(500)]); codec._generator.set_state(st)
        eh = (bx-orig).abs().flatten(1).mean(1); ef = (fresh-orig).abs().flatten(1).mean(1); ta = taskof[ids]
        out.append({'held': [round(float(eh[ta==k].mean()),4) for k in range(t+1)], 'fresh': [round(float(ef[ta==k].mean()),4) for k in range(t+1)], 'all': (float(eh.mean()), float(ef.mean()))})
    for d, m in probes.items():
        hh = (torch.cat([dec_with(m, p) for p in codes_of(mem, sl).split(500)]) - orig).abs().flatten(1).mean(1)
        print('probe', d, [round(float(hh[ta==k].mean()),4) for k in range(tasks)], float(hh.mean()), flush=True)
    acc = []
    with torch.no_grad():
        for task in stream: acc.append(100*float((model(task.test.x).argmax(1)==task.test.y).float().mean()))
    r = {'tag': tag, 'seed': seed, 'how': how, 'retention': sum(acc)/len(acc), 'acc': acc, 'held': out[-1]['held'], 'fresh': out[-1]['fresh'], 'heldall': [o['all'] for o in out], 'cpu': time.process_time()-t0, 'n': n, 'tasks': tasks}
    print(json.dumps(r), flush=True)
    open('/tmp/ageing-lab/out.jsonl','a').write(json.dumps(r)+'\n')
    return r
if __name__ == '__main__':
    for spec in sys.argv[2:]:
        run(int(sys.argv[1]), eval(f'dict({spec})'), tag=spec)

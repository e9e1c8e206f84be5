"""Random numbers: PyTorch's own where they are timed, keel's where results are compared."""

WORD = 0xFFFFFFFF


def stream_of(text):
    """The random stream of a node with this name, as in src/core/rng.h."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & WORD
    return value


def philox(row, index, stream):
    """The four words of blocks `index` of rows `row` of a stream of seed 0, in update 0."""
    def multiply(word, factor):
        product = word * factor  # of 64 bits: what overflows is the sign's
        return product >> 32 & WORD, product & WORD

    counter, key = [index, row, torch.tensor(stream), torch.tensor(0)], [0, 0]
    for _ in range(10):
        high0, low0 = multiply(counter[0], 0xD2511F53)
        high1, low1 = multiply(counter[2], 0xCD9E8D57)
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return counter


def uniform_of(words):
    return (words >> 8).double() * 2.0 ** -24


def normal_of(u, v):
    return torch.sqrt(-2 * torch.log1p(-uniform_of(u))) * torch.cos(2 * math.pi * uniform_of(v))


def keel_noise(scope, shape):
    """The noise that norm_noise of src/ops/norm_noise.h draws for rows, or images, of this
    shape."""
    rows, stream = torch.arange(shape[0]).view(-1, 1), stream_of(scope + "norm_noise")
    channels = torch.arange(shape[1]).view(1, -1)
    of_units = philox(torch.tensor(WORD), channels, stream)
    of_samples = philox(rows, channels, stream)
    drawn = {"m": uniform_of(of_units[0]), "v": uniform_of(of_units[1]),
             "M": uniform_of(of_samples[0]), "S": normal_of(*of_samples[2:])}
    rest = (1,) * (len(shape) - 2)
    return {name: v.view(*v.shape, *rest).float().to(DEVICE) for name, v in drawn.items()}


class Numbers:
    """Draws new numbers whenever it is asked, unless tensors were given for the names."""

    def __init__(self):
        self.given = None

    def uniform(self, name, shape):
        return torch.rand(shape, device=DEVICE) if self.given is None else self.given[name].clone()

    def normal(self, name, shape):
        return torch.randn(shape, device=DEVICE) if self.given is None else self.given[name].clone()

"""Networks for small pictures, and the deep linear one."""


def resnet_shortcut(x, channels, stride):
    """Every stride-th pixel, and channels of zeros on both sides."""
    more = (channels - x.shape[1]) // 2
    x = x[:, :, ::stride, ::stride]
    return F.pad(x, (0, 0, 0, 0, more, more)) if more else x


def resnet_block(net, name, x, channels, stride):
    h = net.conv(name + "/conv1", x, stride, 1)
    h = F.relu(net.norm(name + "/conv1/norm", h))
    h = net.norm(name + "/conv2/norm", net.conv(name + "/conv2", h, 1, 1))
    return F.relu(h + resnet_shortcut(x, channels, stride))


def cifar_resnet20(net, inputs):
    h = F.relu(net.norm("conv/norm", net.conv("conv", inputs["image"], 1, 1)))
    width, blocks = int(net.options["width"]), (int(net.options["depth"]) - 2) // 6
    for stage in range(3):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            h = resnet_block(net, f"stage{stage + 1}/block{block + 1}", h, width << stage, stride)
    return net.linear("logits", h.mean((2, 3)))


def cifar_vgg(net, inputs):
    h = inputs["image"]
    for layer in range(1, 9):
        h = F.relu(net.norm(f"conv{layer}/norm", net.conv(f"conv{layer}", h, 1, 1)))
        if layer in (1, 2, 4, 6, 8):
            h = F.max_pool2d(h, 2)
    h = h.flatten(1)
    for layer in ("fc1", "fc2"):
        h = F.relu(net.linear(layer, h))
    return net.linear("logits", h)


def deep_linear(net, inputs):
    h = inputs["x"]
    for layer in range(1, int(net.options["layers"])):
        h = net.norm(f"fc{layer}/norm", net.linear(f"fc{layer}", h))
    return net.linear("out", h)


def mean_squared_error(net, y, inputs):
    return F.mse_loss(y, inputs["t"])


NETWORKS |= {"cifar_resnet20": cifar_resnet20, "cifar_vgg": cifar_vgg, "deep_linear": deep_linear}
LOSSES["deep_linear"] = mean_squared_error


def in_channels_last(tensors):
    """Images and weights of convolutions as PyTorch stores them channels last, in place."""
    images = [name for name, value in tensors.items() if value.dim() == 4]
    for name in images:
        value = tensors[name].detach().contiguous(memory_format=torch.channels_last)
        tensors[name] = value.requires_grad_(tensors[name].requires_grad)
    return images
